/** Temporal clue: what an answer earns, and that a puzzle has exactly one. */
import { expect, test } from 'vitest';
import agent from '../../examples/temporal-clue/agent.ts';
import { examPuzzles } from '../../examples/temporal-clue/scenarios.ts';
import { playAgent } from '../../sdk/testing/index.ts';

test.each([
  ['right', 0, 1],
  ['wrong', 1, 0],
] as const)('it is asked for a guest: a %s answer', async (_, away, reward) => {
  const [scenario] = examPuzzles(1);
  const answers = [String(((scenario!.answer + away) % 3) + 1)];
  const played = await playAgent(agent, { scenario: scenario!, answers });
  expect(played).toMatchObject({ reward, metrics: { correct: reward === 1 } });
});

const ORDERS = ['123', '132', '213', '231', '312', '321'];

/** Guests that may have been in the room that is asked for: an evening is who was in a, b and c at p, and at q. */
function possible(text: string): Set<string> {
  const [told = '', asked = ''] = text.split('?');
  const clues = told.match(/..../g)!;
  const evenings = ORDERS.flatMap((p) => ORDERS.map((q): Record<string, string> => ({ p, q })));
  const at = (evening: Record<string, string>, [room, hour]: string) => evening[hour!]!['abc'.indexOf(room!)];
  const holds = (evening: Record<string, string>, [guest, room, hour, sign]: string) => {
    if (room !== 'p') return (at(evening, `${room}${hour}`) === guest) === (sign === '+');
    return (evening['p']!.indexOf(guest!) === evening['q']!.indexOf(guest!)) === (sign === '=');
  };
  const left = evenings.filter((evening) => clues.every((clue) => holds(evening, clue)));
  return new Set(left.map((evening) => at(evening, asked)!));
}

test('each puzzle of the exam has exactly one answer', () => {
  for (const { text, answer } of examPuzzles(200)) expect([...possible(text)], text).toEqual([String(answer + 1)]);
});
