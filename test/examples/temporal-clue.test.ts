/** Temporal clue: puzzles with one answer, and what an answer earns in both editions. */
import { describe, expect, test } from 'vitest';
import agent from '../../examples/temporal-clue/agent.ts';
import { holdsOfEvening, holdsOfWeapons } from '../../examples/temporal-clue/clues.ts';
import { FULL, SMALL, type Edition } from '../../examples/temporal-clue/edition.ts';
import { answerOf, makePuzzle, type Answer } from '../../examples/temporal-clue/puzzle.ts';
import { allEvenings, allWeapons } from '../../examples/temporal-clue/scenes.ts';
import small from '../../examples/temporal-clue/small-clue.ts';
import { examPuzzles, trainingPuzzles } from '../../examples/temporal-clue/small-puzzles.ts';
import { sayAnswer } from '../../examples/temporal-clue/text.ts';
import { playAgent } from '../../sdk/testing/index.ts';

const asked = (edition: Edition, answer: Answer) => edition.asked.map((question) => answer[question]).join();

test.each([
  ['full', FULL, [1]],
  ['small', SMALL, [0, 1, 2, 3, 4, 5, 6, 7]],
] as const)('a puzzle of the %s edition has one answer and no other', (_, edition, seeds) => {
  for (const seed of seeds) {
    const { clues, answer } = makePuzzle(edition, seed);
    expect(makePuzzle(edition, seed)).toEqual({ clues, answer });
    const evenings = allEvenings(edition).filter((each) => clues.every((clue) => holdsOfEvening(clue, each)));
    const weapons = allWeapons(edition).filter((each) => clues.every((clue) => holdsOfWeapons(clue, each)));
    const possible = evenings.flatMap((each) => weapons.map((weaponIn) => answerOf({ ...each, weaponIn })));
    expect([...new Set(possible.map((each) => asked(edition, each)))]).toEqual([asked(edition, answer)]);
  }
});

test('a puzzle is solved by its answer, and partly by a part of it', async () => {
  const { answer } = makePuzzle(FULL, 11);
  const play = (said: string) => playAgent(agent, { scenario: { id: 'puzzle-11', seed: 11 }, answers: [said] });
  expect(await play(`I see.\n${sayAnswer(answer)}`)).toMatchObject({ reward: 1, metrics: { solved: true } });
  const wrongHour = sayAnswer({ ...answer, hour: (answer.hour + 1) % 3 });
  expect(await play(wrongHour)).toMatchObject({ reward: 0.75, metrics: { solved: false } });
});

describe('the small edition', () => {
  test.each([
    ['right', 0, 1],
    ['wrong', 1, 0],
  ] as const)('asks for a guest: a %s answer', async (_, away, reward) => {
    const [scenario] = examPuzzles(1);
    const answers = [String(((scenario!.answer.who + away) % 3) + 1)];
    expect(await playAgent(small, { scenario: scenario!, answers })).toMatchObject({
      reward,
      metrics: { correct: reward === 1 },
    });
  });

  test('asks nothing in the exam that is trained on, in whatever order its clues stand', () => {
    const keyOf = ({ text }: { text: string }) => {
      const [clues, question] = text.split('?') as [string, string];
      return `${(clues.match(/.{4}/g) ?? []).toSorted().join('')}?${question}`;
    };
    const exam = [...examPuzzles(200)].map(keyOf);
    const trained = new Set([...trainingPuzzles(1000)].map(keyOf));
    expect(new Set(exam).size).toBe(200);
    expect(exam.filter((key) => trained.has(key))).toEqual([]);
  });
});
