/** Codenames: what each role earns, and both editions played by scripted players. */
import { describe, expect, test } from 'vitest';
import full from '../../examples/codenames/agent.ts';
import { makeBoard } from '../../examples/codenames/boards.ts';
import { openWords, ownerOf, type Board, type Owner } from '../../examples/codenames/game.ts';
import { PASS, playGame } from '../../examples/codenames/play.ts';
import { heldOutBoards, repeatBoards, trainingBoards } from '../../examples/codenames/small-boards.ts';
import small from '../../examples/codenames/small-codenames.ts';
import withoutClues from '../../examples/codenames/small-without-clues.ts';
import { parseClue } from '../../examples/codenames/text.ts';
import { HELD_OUT_WORDS, TRAINING_WORDS } from '../../examples/codenames/words.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/trajectories.ts';

const OWNERS: Readonly<Record<string, Owner>> = {
  ROSE: 'team',
  OAK: 'team',
  PINE: 'team',
  CAR: 'neutral',
  GUN: 'assassin',
};
const BOARD: Board = Object.entries(OWNERS).map(([word, owner]) => ({ word, owner, isCovered: false }));
const prompt = ({ messages }: CallRequest) => String(messages[0]?.content);

type Turn = readonly [clue: string, ...guesses: readonly (string | typeof PASS)[]];

/** Plays what each turn says; a clue's number is the digit at its end. */
function play(...turns: readonly Turn[]) {
  let left: readonly (string | typeof PASS)[] = [];
  let next = 0;
  return playGame(BOARD, 3, {
    giveClue: () => {
      const [clue, ...guesses] = turns[next++]!;
      left = guesses;
      return Promise.resolve(parseClue(clue));
    },
    nameWord: () => {
      const [guess = null, ...others] = left;
      left = others;
      return Promise.resolve(guess);
    },
  });
}

test.each<[string, Turn[], number, number | null]>([
  [
    'is won when the words are found',
    [
      ['TREE 2', 'OAK', 'PINE', 'ROSE'],
      ['THORN 1', 'ROSE'],
    ],
    1,
    1,
  ],
  [
    'goes on after a neutral word',
    [
      ['TREE 2', 'CAR', 'OAK'],
      ['PLANT 3', 'ROSE', PASS],
      ['TREE 1', 'OAK'],
    ],
    2 / 3,
    2 / 3,
  ],
  ['is lost for both by the assassin', [['PLANT 2', 'ROSE', 'GUN']], 1 / 3 - 0.5, 1 / 3 - 0.5],
  ['ends with a clue that names a word, before the guesser was asked', [['OAK 1']], -1, null],
  ['ends with what is no clue', [['TREE 1', 'OAK'], ['I think']], 1 / 3 - 1, 1 / 3],
  ['ends with a word that is not on the board', [['TREE 1', 'ELM']], 0, -1],
  ['ends with a pass at the first guess', [['TREE 1', PASS]], 0, -1],
])('a game %s', async (_, turns, spymaster, guesser) => {
  const { roleRewards } = await play(...turns);
  expect(roleRewards.spymaster).toBeCloseTo(spymaster);
  if (guesser === null) expect(roleRewards.guesser).toBeNull();
  else expect(roleRewards.guesser).toBeCloseTo(guesser);
});

test('held-out words are in no training board, and a board follows from its seed', () => {
  const words = [...TRAINING_WORDS, ...HELD_OUT_WORDS];
  expect(new Set(words).size).toBe(words.length);
  expect(makeBoard(TRAINING_WORDS, 5)).toEqual(makeBoard(TRAINING_WORDS, 5));
});

test('the guesser is not told whose the words are; each role calls its own policy', async () => {
  const board = makeBoard(TRAINING_WORDS, 5);
  const answers = (request: CallRequest) => {
    if (prompt(request).includes('spymaster in')) return 'QQQ 2';
    const own = openWords(board).find((word) => ownerOf(board, word) === 'team' && prompt(request).includes(word));
    return prompt(request).includes('or PASS') ? 'PASS' : (own ?? '');
  };
  const scenario = { id: 'game-5', seed: 5, isHeldOut: false };
  const { metrics, calls, failure } = await playAgent(full, { scenario, answers });
  expect(failure).toBeNull();
  expect(calls.map(({ role }) => role).slice(0, 4)).toEqual(['spymaster', 'guesser', 'guesser', 'spymaster']);
  expect(metrics).toMatchObject({ turns: 5, foulClue: false, foulGuess: false });
  expect(metrics['found']).toBeCloseTo(5 / 9);
  expect(prompt(calls[1]!.request)).toContain(openWords(board).join(', '));
});

describe('the small edition', () => {
  const scenario = { id: 'tnt-a', owners: ['team', 'neutral', 'team', null, 'assassin'] as const };
  /** The spymaster gives the first clue that fits, the guesser names the first open word of 1 and 2 for 7, of 3 for 9. */
  const answers = (request: CallRequest) => {
    const shown = prompt(request);
    if (shown.length === 9) return /[6-9]/.exec(shown.slice(5))?.[0] ?? '';
    const meant = shown.startsWith('9') ? '3' : '12';
    return meant.split('').find((word) => shown.slice(1, -1).includes(word)) ?? '';
  };

  test('a pair that understands each other wins', async () => {
    const { metrics, calls } = await playAgent(small, { scenario, answers });
    expect(calls.map(({ request }) => prompt(request))).toEqual([
      'oao.xx7x9',
      expect.any(String),
      '.ao.xxxx9',
      expect.any(String),
    ]);
    expect(metrics).toMatchObject({ found: 1, won: true, turns: 2, 'reward/spymaster': 1, 'reward/guesser': 1 });
  });

  test('an answer that is no clue ends the game before the guesser is asked', async () => {
    const { metrics } = await playAgent(small, { scenario, answers: () => '1' });
    expect(metrics).toMatchObject({ 'reward/spymaster': -1, foulClue: true });
    expect(metrics).not.toHaveProperty('reward/guesser');
  });

  test('without clues, the guesser hears what the spymaster did not say', async () => {
    const heard = new Set<string>();
    for (const each of repeatBoards([scenario], 8)) {
      const { calls } = await playAgent(withoutClues, { scenario: each, answers });
      heard.add(prompt(calls[1]!.request)[0]!);
    }
    expect(heard.size).toBeGreaterThan(1);
  });

  test('no held-out board is trained on, and each word is as often the assassin as any other', () => {
    const trained = new Set(trainingBoards.map(({ id }) => id));
    expect([trained.size, heldOutBoards.length]).toEqual([70, 20]);
    expect(heldOutBoards.filter(({ id }) => trained.has(id))).toEqual([]);
    for (const boards of [trainingBoards, heldOutBoards]) {
      const assassins = boards.map(({ owners }) => owners.indexOf('assassin'));
      expect(new Set([0, 1, 2, 3, 4].map((word) => assassins.filter((each) => each === word).length)).size).toBe(1);
    }
  });
});
