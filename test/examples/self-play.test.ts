/** Two policies that play each other, and a league: which role calls, and what each earns. */
import { expect, test } from 'vitest';

import agent from '../../examples/self-play/agent.ts';
import { matches } from '../../examples/self-play/match.ts';
import { freeCells } from '../../examples/tic-tac-toe/game.ts';
import { playAgent } from '../../sdk/testing/index.ts';

const boardOf = (shown: string) => shown.replaceAll(/[1-9]/g, '.');

/** The first free cell. */
function firstCell({ messages }: { messages: readonly { content?: unknown }[] }): string {
  return String(freeCells(boardOf(String(messages[0]?.content)))[0]! + 1);
}

const [own, , againstO, againstX] = matches(0, 4, { withLeague: true });

test('both sides call, alternately, and what one wins the other loses', async () => {
  const { metrics, calls, failure } = await playAgent(agent, { scenario: own!, answers: firstCell });
  expect(failure).toBeNull();
  expect(calls.map(({ role }) => role)).toEqual(calls.map((_, index) => (index % 2 === 0 ? 'x' : 'o')));
  expect(Number(metrics['reward/x']) + Number(metrics['reward/o'])).toBe(0);
  expect(metrics['calls/x']).toBe(Math.ceil(calls.length / 2));
});

test.each([
  [againstO!, ['x', 'past-o'], 'reward/o'],
  [againstX!, ['past-x', 'o'], 'reward/x'],
])('against the league, the role that does not play has no reward', async (scenario, roles, absent) => {
  const { metrics, calls, failure } = await playAgent(agent, { scenario, answers: firstCell });
  expect(failure).toBeNull();
  expect([...new Set(calls.map(({ role }) => role))]).toEqual(roles);
  expect(metrics).not.toHaveProperty(absent);
});

test('an illegal move loses the game', async () => {
  const { metrics } = await playAgent(agent, { scenario: own!, answers: () => 'x' });
  expect(metrics).toMatchObject({ 'reward/x': -1, 'reward/o': 1, illegal: true, moves: 1 });
});
