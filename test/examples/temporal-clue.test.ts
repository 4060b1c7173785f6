/** Temporal clue: what an answer earns in both editions. */
import { expect, test } from 'vitest';
import agent from '../../examples/temporal-clue/agent.ts';
import { FULL } from '../../examples/temporal-clue/edition.ts';
import { makePuzzle } from '../../examples/temporal-clue/puzzle.ts';
import small from '../../examples/temporal-clue/small-clue.ts';
import { examPuzzles } from '../../examples/temporal-clue/small-puzzles.ts';
import { sayAnswer } from '../../examples/temporal-clue/text.ts';
import { playAgent } from '../../sdk/testing/index.ts';

test('a puzzle is solved by its answer, and partly by a part of it', async () => {
  const { answer } = makePuzzle(FULL, 11);
  const play = (said: string) => playAgent(agent, { scenario: { id: 'puzzle-11', seed: 11 }, answers: [said] });
  expect(await play(`I see.\n${sayAnswer(answer)}`)).toMatchObject({ reward: 1, metrics: { solved: true } });
  const wrongHour = sayAnswer({ ...answer, hour: (answer.hour + 1) % 3 });
  expect(await play(wrongHour)).toMatchObject({ reward: 0.75, metrics: { solved: false } });
});

test.each([
  ['right', 0, 1],
  ['wrong', 1, 0],
] as const)('the small edition asks for a guest: a %s answer', async (_, away, reward) => {
  const [scenario] = examPuzzles(1);
  const answers = [String(((scenario!.answer.who + away) % 3) + 1)];
  const played = await playAgent(small, { scenario: scenario!, answers });
  expect(played).toMatchObject({ reward, metrics: { correct: reward === 1 } });
});
