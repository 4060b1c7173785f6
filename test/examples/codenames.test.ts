/** Codenames: both editions played by scripted players, and what each role earns. */
import { describe, expect, test } from 'vitest';
import full from '../../examples/codenames/agent.ts';
import { makeBoard } from '../../examples/codenames/boards.ts';
import { openWords, ownerOf } from '../../examples/codenames/game.ts';
import { repeatBoards } from '../../examples/codenames/small-boards.ts';
import small from '../../examples/codenames/small-codenames.ts';
import withoutClues from '../../examples/codenames/small-without-clues.ts';
import { TRAINING_WORDS } from '../../examples/codenames/words.ts';
import { playAgent } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/groups/trajectories.ts';

const prompt = ({ messages }: CallRequest) => String(messages[0]?.content);

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
});
