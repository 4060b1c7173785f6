import { describe, expect, test } from 'vitest';
import { allClues, holds, type Clue } from '../../examples/temporal-clue/clues.ts';
import { FULL, SMALL, type Edition } from '../../examples/temporal-clue/edition.ts';
import { answerOf, makePuzzle, type Puzzle } from '../../examples/temporal-clue/puzzle.ts';
import type { Scene } from '../../examples/temporal-clue/scenes.ts';
import { examPuzzles, keyOf, trainingPuzzles } from '../../examples/temporal-clue/small-puzzles.ts';
import { grade, gradeSmall, renderPuzzle, renderSmall, sayAnswer } from '../../examples/temporal-clue/text.ts';

const ORDERS = ['012', '021', '102', '120', '201', '210'].map((order) => order.split('').map(Number));

/** Every scene that there is, counted out by plain numbers: shares nothing with the generator but what a clue means. */
function* everyScene({ guests, hours, rooms, oneGuestInEachRoom, weapons }: Edition): Generator<Scene> {
  const cells = guests * hours;
  for (let code = 0; code < rooms ** cells; code++) {
    const digits = code.toString(rooms).padStart(cells, '0').split('').map(Number);
    const at = Array.from({ length: guests }, (_, guest) => digits.slice(guest * hours, (guest + 1) * hours));
    const inOrder = Array.from({ length: hours }, (_, hour) => new Set(at.map((row) => row[hour])).size === guests);
    if (oneGuestInEachRoom && inOrder.includes(false)) continue;
    for (let guest = 0; guest < guests; guest++) {
      for (let hour = 0; hour < hours; hour++) {
        const room = at[guest]![hour];
        if (at.filter((row) => row[hour] === room).length > 1) continue;
        for (const weaponIn of weapons ? ORDERS : [[0, 1, 2]]) yield { at, crime: { guest, hour }, weaponIn };
      }
    }
  }
}

function answersLeft(edition: Edition, { clues }: Pick<Puzzle, 'clues'>): string[] {
  const answers = new Set<string>();
  for (const scene of everyScene(edition)) {
    if (!clues.every((clue) => holds(clue, scene))) continue;
    const answer = answerOf(scene);
    answers.add(edition.asked.map((question) => `${question} ${answer[question]}`).join(', '));
  }
  return [...answers];
}

const inWords = (edition: Edition, { answer }: Puzzle) =>
  edition.asked.map((question) => `${question} ${answer[question]}`).join(', ');

describe('a puzzle', () => {
  test.each([1, 2])('of the full edition has one answer and no other (seed %d)', (seed) => {
    const puzzle = makePuzzle(FULL, seed);
    expect(answersLeft(FULL, puzzle)).toEqual([inWords(FULL, puzzle)]);
  });

  test('of the small edition has one answer and no other', () => {
    for (let seed = 0; seed < 60; seed++) {
      const puzzle = makePuzzle(SMALL, seed);
      expect(answersLeft(SMALL, puzzle)).toEqual([inWords(SMALL, puzzle)]);
    }
  });

  test('needs each of its clues', () => {
    for (let seed = 0; seed < 20; seed++) {
      const { clues } = makePuzzle(SMALL, seed);
      for (const clue of clues.filter(({ kind }) => kind !== 'crime')) {
        const others = clues.filter((each) => each !== clue);
        expect(answersLeft(SMALL, { clues: others }).length).toBeGreaterThan(1);
      }
    }
    const { clues } = makePuzzle(FULL, 1);
    expect(answersLeft(FULL, { clues: clues.slice(1) }).length).toBeGreaterThan(1);
  });

  test.each([FULL, SMALL])('is the same for one seed, and another for others', (edition) => {
    expect(makePuzzle(edition, 7)).toEqual(makePuzzle(edition, 7));
    const texts = [1, 2, 3, 4, 5].map((seed) => JSON.stringify(makePuzzle(edition, seed)));
    expect(new Set(texts).size).toBe(5);
  });
});

/** Ada: hall, hall, kitchen. Bruno: hall, library, kitchen. Clara: kitchen, kitchen, library; she did it, at 10. */
const SCENE: Scene = {
  at: [
    [0, 0, 2],
    [0, 1, 2],
    [2, 2, 1],
  ],
  weaponIn: [2, 0, 1],
  crime: { guest: 2, hour: 2 },
};

describe('a clue', () => {
  test.each<[Clue, boolean]>([
    [{ kind: 'at', guest: 1, hour: 1, room: 1 }, true],
    [{ kind: 'at', guest: 1, hour: 1, room: 0 }, false],
    [{ kind: 'not-at', guest: 1, hour: 1, room: 0 }, true],
    [{ kind: 'together', guest: 1, other: 0, hour: 2 }, true],
    [{ kind: 'apart', guest: 1, other: 0, hour: 1 }, true],
    [{ kind: 'apart', guest: 1, other: 0, hour: 0 }, false],
    [{ kind: 'stayed', guest: 0, hour: 0 }, true],
    [{ kind: 'moved', guest: 0, hour: 0 }, false],
    [{ kind: 'moved', guest: 2, hour: 1 }, true],
    [{ kind: 'empty', room: 1, hour: 0 }, true],
    [{ kind: 'empty', room: 2, hour: 2 }, false],
    [{ kind: 'weapon-not-in', weapon: 2, room: 0 }, false],
    [{ kind: 'weapon-not-in', weapon: 2, room: 1 }, true],
    [{ kind: 'crime-from', hour: 2 }, true],
    [{ kind: 'crime-until', hour: 1 }, false],
    [{ kind: 'crime-not-in', room: 1 }, false],
    [{ kind: 'crime', hour: 2, room: 1 }, true],
    [{ kind: 'crime', hour: 1, room: 1 }, false],
  ])('%j is %s of a scene', (clue, expected) => {
    expect(holds(clue, SCENE)).toBe(expected);
  });

  test('of every kind that an edition knows can be said', () => {
    for (const edition of [FULL, SMALL]) {
      expect(new Set(allClues(edition).map(({ kind }) => kind))).toEqual(new Set(edition.kinds));
    }
  });
});

describe('the full edition', () => {
  test('says every clue in words, and ends with its question', () => {
    const text = renderPuzzle({ answer: answerOf(SCENE), clues: allClues(FULL) });
    expect(text).not.toMatch(/undefined|null|\[object/);
    expect(text.split('\n').filter((line) => line.startsWith('- '))).toHaveLength(allClues(FULL).length);
    expect(text).toContain('- At 9, Bruno was not in the library.');
    expect(text).toMatch(/End with one line: guest, room, hour, weapon\.$/);
  });

  test.each([
    ['Clara, library, 10, candlestick', 1],
    ['Let me think.\nclara, LIBRARY, 10, candlestick.\n', 1],
    ['Clara, library, 9, candlestick', 0.75],
    ['Ada, hall, 8, rope', 0],
    ['Clara', 0],
    ['Clara, library, 10, candlestick, and so on', 0],
    ['Ada, Bruno, Clara, hall, library, kitchen', 0],
    ['', 0],
    [null, 0],
  ])('the answer %j is worth %d', (text, reward) => {
    expect(grade(text, answerOf(SCENE))).toBe(reward);
  });

  test('its own answer is worth all', () => {
    const { answer } = makePuzzle(FULL, 1);
    expect(grade(sayAnswer(answer), answer)).toBe(1);
  });
});

describe('the small edition', () => {
  test('is a few bytes', () => {
    const clues: Clue[] = [
      { kind: 'crime', hour: 1, room: 2 },
      { kind: 'at', guest: 0, hour: 0, room: 0 },
      { kind: 'not-at', guest: 1, hour: 1, room: 1 },
      { kind: 'stayed', guest: 2, hour: 0 },
      { kind: 'moved', guest: 0, hour: 0 },
    ];
    expect(renderSmall({ clues, answer: { who: 1, hour: 1, room: 2, weapon: 2 } })).toBe('1ap+2bq-3pq=1pq!?cq');
  });

  test.each([
    ['2', 1],
    ['1', 0],
    ['22', 0],
    [' 2', 0],
    [null, 0],
  ])('the answer %j for guest 2 is worth %d', (text, reward) => {
    expect(gradeSmall(text, { who: 1, hour: 0, room: 0, weapon: 0 })).toBe(reward);
  });

  test('asks nothing in the exam that is trained on, in whatever order its clues stand', () => {
    const keyOfScenario = (text: string) => {
      const [clues, question] = text.split('?') as [string, string];
      return `${(clues.match(/.{4}/g) ?? []).toSorted().join('')}?${question}`;
    };
    const exam = [...examPuzzles(200)].map(({ text }) => keyOfScenario(text));
    const trained = new Set([...trainingPuzzles(1000)].map(({ text }) => keyOfScenario(text)));
    expect(new Set(exam).size).toBe(200);
    expect(exam.filter((key) => trained.has(key))).toEqual([]);
    expect(trained.size).toBeGreaterThan(400);
  });

  test('the exam’s answers are spread over the guests', () => {
    const counts = [0, 0, 0];
    for (const { answer } of examPuzzles(200)) counts[answer.who]! += 1;
    expect(Math.min(...counts)).toBeGreaterThan(40);
  });

  test('a key does not depend on the order of clues', () => {
    const puzzle = makePuzzle(SMALL, 5);
    expect(keyOf({ ...puzzle, clues: puzzle.clues.toReversed() })).toBe(keyOf(puzzle));
  });
});
