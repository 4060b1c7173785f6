/** Codenames: its rules, what each role earns, and both editions played by scripted players. */
import { describe, expect, test } from 'vitest';
import full from '../../examples/codenames/agent.ts';
import { makeBoard } from '../../examples/codenames/boards.ts';
import {
  countOpen,
  cover,
  isLegalClue,
  openWords,
  ownerOf,
  type Board,
  type Owner,
} from '../../examples/codenames/game.ts';
import { PASS, playGame } from '../../examples/codenames/play.ts';
import {
  fittingClues,
  heldOutBoards,
  repeatBoards,
  smallBoard,
  trainingBoards,
} from '../../examples/codenames/small-boards.ts';
import small from '../../examples/codenames/small-codenames.ts';
import { renderForGuesser, renderForSpymaster } from '../../examples/codenames/small-text.ts';
import withoutClues from '../../examples/codenames/small-without-clues.ts';
import { parseClue, parseGuess } from '../../examples/codenames/text.ts';
import { HELD_OUT_WORDS, TRAINING_WORDS } from '../../examples/codenames/words.ts';
import { playAgent } from '../../sdk/testing/index.ts';

const OWNERS: Readonly<Record<string, Owner>> = {
  ROSE: 'team',
  OAK: 'team',
  PINE: 'team',
  CAR: 'neutral',
  BUS: 'neutral',
  GUN: 'assassin',
};
const BOARD: Board = Object.entries(OWNERS).map(([word, owner]) => ({ word, owner, isCovered: false }));

type Turn = readonly [clue: string, ...guesses: readonly (string | typeof PASS)[]];

/** Plays what each turn says; a clue's number is the digit at its end. */
async function play(...turns: readonly Turn[]) {
  const left: (string | typeof PASS)[] = [];
  let next = 0;
  const ending = await playGame(BOARD, 3, {
    giveClue: () => {
      const [clue, ...guesses] = turns[next++]!;
      left.splice(0, left.length, ...guesses);
      return Promise.resolve(parseClue(clue));
    },
    nameWord: () => Promise.resolve(left.shift() ?? null),
  });
  return { ...ending, left };
}

describe('a clue', () => {
  test.each([
    ['PLANT', 2, true],
    ['ROSE', 1, false],
    ['rose', 1, false],
    ['PRIMROSE', 1, false],
    ['RO', 1, false],
    ['', 1, false],
    ['PLANT', 0, false],
  ])('%j for %d words is legal: %s', (word, number, isLegal) => {
    expect(isLegalClue({ word, number }, BOARD)).toBe(isLegal);
  });

  test('may be a word that is covered', () => {
    expect(isLegalClue({ word: 'ROSE', number: 1 }, cover(BOARD, 'ROSE'))).toBe(true);
  });
});

describe('a game', () => {
  test('is won when the words are found, in as many guesses as the clues allow', async () => {
    const { roleRewards, metrics, left } = await play(['TREE 2', 'OAK', 'PINE', 'ROSE'], ['THORN 1', 'ROSE']);
    expect(roleRewards).toEqual({ spymaster: 1, guesser: 1 });
    expect(metrics).toMatchObject({ found: 1, won: true, turns: 2 });
    expect(left).toEqual([]);
  });

  test('goes on after a neutral word, which ends the turn', async () => {
    const { roleRewards, metrics } = await play(
      ['TREE 2', 'CAR', 'OAK'],
      ['PLANT 3', 'ROSE', PASS, 'OAK'],
      ['TREE 1', 'OAK'],
    );
    expect(roleRewards.guesser).toBeCloseTo(2 / 3);
    expect(roleRewards.spymaster).toBeCloseTo(2 / 3);
    expect(metrics).toMatchObject({ won: false, assassin: false, turns: 3 });
  });

  test('is lost for both by the assassin', async () => {
    const { roleRewards, metrics } = await play(['PLANT 2', 'ROSE', 'GUN']);
    expect(roleRewards.spymaster).toBeCloseTo(1 / 3 - 0.5);
    expect(roleRewards.guesser).toBeCloseTo(1 / 3 - 0.5);
    expect(metrics).toMatchObject({ assassin: true, turns: 1 });
  });

  test.each<[string, Turn[], number, number | null]>([
    ['a clue that names a word, before the guesser was asked', [['OAK 1']], -1, null],
    ['what is no clue, in the second turn', [['TREE 1', 'OAK'], ['I think']], 1 / 3 - 1, 1 / 3],
    ['a word that is not on the board', [['TREE 1', 'ELM']], 0, -1],
    ['a word that is covered', [['TREE 2', 'OAK', 'OAK']], 1 / 3, 1 / 3 - 1],
    ['two words in place of one', [['TREE 2', 'OAK, PINE']], 0, -1],
    ['no answer', [['TREE 1']], 0, -1],
    ['a pass at the first guess', [['TREE 1', PASS]], 0, -1],
  ])('ends with %s, and the player who broke the rule pays alone', async (_, turns, spymaster, guesser) => {
    const { roleRewards } = await play(...turns);
    expect(roleRewards.spymaster).toBeCloseTo(spymaster);
    if (guesser === null) expect(roleRewards.guesser).toBeNull();
    else expect(roleRewards.guesser).toBeCloseTo(guesser);
  });
});

describe('the full edition', () => {
  const board = makeBoard(TRAINING_WORDS, 5);

  test('a board has nine words of the team, one assassin, and follows from its seed', () => {
    expect(new Set(openWords(board)).size).toBe(25);
    expect([countOpen(board, 'team'), countOpen(board, 'neutral'), countOpen(board, 'assassin')]).toEqual([9, 15, 1]);
    expect(makeBoard(TRAINING_WORDS, 5)).toEqual(board);
    expect(openWords(makeBoard(TRAINING_WORDS, 6))).not.toEqual(openWords(board));
    expect(board.slice(0, 9).every(({ owner }) => owner === 'team')).toBe(false);
  });

  test('held-out words are in no training board, and each word is there once', () => {
    const words = [...TRAINING_WORDS, ...HELD_OUT_WORDS];
    expect(new Set(words).size).toBe(words.length);
    expect(words.filter((word) => !/^[A-Z]{2,}$/.test(word))).toEqual([]);
  });

  test.each([
    ['OCEAN 2', { word: 'OCEAN', number: 2 }],
    ['Water, ships.\n\n**ocean: 2**.', { word: 'OCEAN', number: 2 }],
    ['"Ocean" 2', null],
    ['OCEAN', null],
    ['OCEAN 0', null],
    ['OCEAN 12', null],
    ['DEEP OCEAN 2', null],
    [null, null],
  ])('the answer %j is the clue %j', (answer, clue) => {
    expect(parseClue(answer)).toEqual(clue);
  });

  test.each([
    ['Trees have bark.\n**oak**.', 'OAK'],
    ['OAK, PINE', 'OAK, PINE'],
    ['Pass', PASS],
    [null, ''],
  ])('the answer %j names %s', (answer, word) => {
    expect(parseGuess(answer)).toBe(word);
  });

  test('the guesser is not told whose the words are; each role calls its own policy', async () => {
    const scenario = { id: 'game-5', seed: 5, isHeldOut: false };
    const target = board.find(({ owner }) => owner === 'team')!.word;
    const answers = ({ messages }: { messages: readonly { content?: unknown }[] }) => {
      const prompt = String(messages[0]?.content);
      if (prompt.includes('spymaster in')) return 'QQQ 2';
      return prompt.includes('or PASS')
        ? 'PASS'
        : (openWords(board).find((w) => ownerOf(board, w) === 'team' && prompt.includes(w)) ?? '');
    };
    const { metrics, calls, failure } = await playAgent(full, { scenario, answers });
    expect(failure).toBeNull();
    expect(calls.map(({ role }) => role).slice(0, 4)).toEqual(['spymaster', 'guesser', 'guesser', 'spymaster']);
    expect(metrics).toMatchObject({ turns: 5, foulClue: false, foulGuess: false });
    expect(metrics['found']).toBeCloseTo(5 / 9);
    const prompts = calls.map(({ request }) => String(request.messages[0]?.content));
    expect(prompts[0]).toContain(`Your team's words: ${target}`);
    expect(prompts[1]).toContain(openWords(board).join(', '));
    expect(prompts[3]).toContain('4 turns left');
    expect(prompts[3]).not.toContain(`${target}, `);
  });
});

describe('the small edition', () => {
  const scenario = { id: 'tnt-a', owners: ['team', 'neutral', 'team', null, 'assassin'] as const };
  const board = smallBoard(scenario);

  test('the spymaster sees owners and fitting clues, the guesser the clue and the open words', () => {
    // 6 and 8 fit the assassin, too.
    expect(fittingClues(board)).toEqual(['7', '9']);
    expect(renderForSpymaster(board)).toBe('oao.xx7x9');
    expect(renderForGuesser(cover(board, '1'), { word: '9', number: 1 })).toBe('9.23.5x');
    expect(renderForSpymaster(cover(board, '1'))).toBe('.ao.xxxx9');
  });

  test('every word of the team has a clue that fits, on every board', () => {
    for (const each of [...trainingBoards, ...heldOutBoards].map(smallBoard)) {
      for (const { word } of each.filter(({ owner }) => owner === 'team')) {
        const others = each.map((card) =>
          card.owner === 'team' && card.word !== word ? { ...card, isCovered: true } : card,
        );
        expect(fittingClues(others).length).toBeGreaterThan(0);
      }
    }
  });

  test('no held-out board is trained on, and repeated boards have ids of their own', () => {
    const trained = new Set(trainingBoards.map(({ id }) => id));
    expect(trained.size + heldOutBoards.length).toBe(90);
    expect(heldOutBoards.filter(({ id }) => trained.has(id))).toEqual([]);
    expect(heldOutBoards.length).toBe(20);
    expect(new Set(repeatBoards(heldOutBoards, 200).map(({ id }) => id)).size).toBe(200);
  });

  test('each word is as often the assassin as any other, so that none is safe to name', () => {
    for (const boards of [trainingBoards, heldOutBoards]) {
      const assassins = [0, 1, 2, 3, 4].map(
        (word) => boards.filter(({ owners }) => owners[word] === 'assassin').length,
      );
      expect(new Set(assassins).size).toBe(1);
    }
  });

  /** The spymaster gives the first clue that fits, the guesser names the first open word of 1 and 2 for 7, of 3 for 9. */
  const answers = ({ messages }: { messages: readonly { content?: unknown }[] }) => {
    const prompt = String(messages[0]?.content);
    if (prompt.length === 9) return /[6-9]/.exec(prompt.slice(5))?.[0] ?? '';
    const meant = prompt.startsWith('9') ? '3' : '12';
    return meant.split('').find((word) => prompt.slice(1, -1).includes(word)) ?? '';
  };

  test('a pair that understands each other wins', async () => {
    const { metrics, calls, failure } = await playAgent(small, { scenario, answers });
    expect(failure).toBeNull();
    expect(calls.map(({ role }) => role)).toEqual(['spymaster', 'guesser', 'spymaster', 'guesser']);
    expect(metrics).toMatchObject({ found: 1, won: true, turns: 2, 'reward/spymaster': 1, 'reward/guesser': 1 });
  });

  test('without clues, the guesser hears what the spymaster did not say', async () => {
    const heard = new Set<string>();
    for (const each of repeatBoards([scenario], 8)) {
      const { calls } = await playAgent(withoutClues, { scenario: each, answers });
      const [clue, prompt] = calls.map(({ request }) => String(request.messages[0]?.content));
      expect(clue).toBe('oao.xx7x9');
      heard.add(prompt![0]!);
    }
    expect(heard.size).toBeGreaterThan(1);
  });

  test('an answer that is no clue ends the game before the guesser is asked', async () => {
    const { metrics } = await playAgent(small, { scenario, answers: () => '1' });
    expect(metrics).toMatchObject({ 'reward/spymaster': -1, foulClue: true });
    expect(metrics).not.toHaveProperty('reward/guesser');
  });
});
