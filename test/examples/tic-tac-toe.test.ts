import { expect, test } from 'vitest';
import agent from '../../examples/tic-tac-toe/agent.ts';
import { freeCells } from '../../examples/tic-tac-toe/game.ts';
import { games } from '../../examples/tic-tac-toe/play.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/groups/trajectories.ts';

test('each game ends as its board says, and is the same for one seed', async () => {
  const firstCell = ({ messages }: CallRequest) => /\d/.exec(String(messages[0]?.content))?.[0] ?? '';
  const endings = new Set<number>();
  for (const scenario of games(7, 40)) {
    const played = await playAgent(agent, { scenario, answers: firstCell });
    expect(await playAgent(agent, { scenario, answers: firstCell })).toMatchObject({ metrics: played.metrics });
    endings.add(played.reward!);
    expect(played.metrics['win']).toBe(played.reward === 1);
    const last = String(played.calls.at(-1)!.request.messages[0]?.content).replaceAll(/\d/g, '.');
    expect(freeCells(last).length).toBeGreaterThan(0);
  }
  expect(endings).toContain(1);
  expect(endings.size).toBeGreaterThan(1);
});

test('an answer that is no free cell loses', async () => {
  const [scenario] = games(7, 1);
  expect(await playAgent(agent, { scenario: scenario!, answers: ['x'] })).toMatchObject({ reward: -1 });
});
