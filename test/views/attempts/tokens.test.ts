import { expect, test } from 'vitest';

import { writeFixtureRun } from '../../cli/fixture-store.ts';
import * as layout from '../../../store/layout.ts';
import { decodeRollouts, encodeRollouts, type CallRecord } from '../../../store/records/groups/trajectories.ts';
import type { Store } from '../../../store/store.ts';
import { decodePieces, viewTokens } from '../../../views/attempts/tokens.ts';
import type { Vocabulary } from '../../../views/context/context.ts';
import { contextOf } from '../context.ts';
import { attemptOf, callOf, rolloutsOf, said, system, user } from '../../store/records/made-attempt.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

/** Ids below 256 are bytes; 261 ends a turn. */
const BYTES: Vocabulary = {
  bytesOf: (id) => (id < 256 ? Uint8Array.of(id) : new TextEncoder().encode('<end>')),
  isControl: (id) => id >= 256,
};

const idsOf = (text: string): number[] => [...new TextEncoder().encode(text)];

test('a character of several tokens stands at the last of them', () => {
  expect(decodePieces(BYTES, idsOf('a€b'))).toEqual(['a', '', '', '€', 'b']);
  expect(decodePieces(BYTES, idsOf('🙂'))).toEqual(['', '', '', '🙂']);
  // It began among the tokens that an earlier turn showed.
  const [first, ...rest] = idsOf('€');
  expect(decodePieces(BYTES, rest, [65, first!])).toEqual(['', '€']);
});

test('bytes that are no text are marked, and a text that ends in the middle of a character is not lost', () => {
  expect(decodePieces(BYTES, [255, 65])).toEqual(['\uFFFD', 'A']);
  expect(decodePieces(BYTES, [65, 0xe2, 0x82])).toEqual(['A', '', '\uFFFD']);
  expect(decodePieces(BYTES, [0xe2, 261])).toEqual(['', '\uFFFD<end>']);
  expect(decodePieces(BYTES, [])).toEqual([]);
});

/** What views see where these calls are the only attempt of step 2. */
async function playedBy(store: Store, calls: CallRecord[]) {
  const rollouts = rolloutsOf([attemptOf(0, calls)], { step: 2, group: 0 });
  const key = layout.rolloutsKey({ run: 'demo', branch: 0, step: 2, group: 0 });
  await store.publish(key, await encodeRollouts(rollouts));
  return contextOf(store, { readVocabulary: () => Promise.resolve(BYTES) });
}

test('the ids of each turn are those of the record, and its prompt is what earlier turns did not show', async () => {
  const store = await writeFixtureRun(temporaryFolder(), { steps: 1 });
  const prompt = [...idsOf('Frage: 1+1?'), 261];
  const answer = [...idsOf('zwei'), 261];
  const more = [...idsOf('Äh?'), 261];
  const calls = [
    callOf([user('1+1?')], 'zwei', { promptTokenIds: prompt, tokenIds: answer, logprobs: answer.map(() => -0.5) }),
    callOf([user('1+1?'), said('zwei'), user('Äh?')], 'ja', {
      promptTokenIds: [...prompt, ...answer, ...more],
      tokenIds: idsOf('ja'),
      logprobs: [-0.25, -0.125],
    }),
  ];
  const context = await playedBy(store, calls);
  const { hasText, turns, leftOut } = await viewTokens(context, 'demo', '0.2.0.0');
  expect([hasText, leftOut]).toEqual([true, 0]);
  expect(turns.map(({ shared, sampledFrom }) => [shared, sampledFrom])).toEqual([
    [0, prompt.length],
    [prompt.length + answer.length, more.length],
  ]);
  expect(turns.map(({ text }) => text.join(''))).toEqual(['Frage: 1+1?<end>zwei<end>', 'Äh?<end>ja']);
  expect(turns[1]!.control).toEqual([4]);
  for (const [index, { call, ids, sampledFrom, logprobs, ...columns }] of turns.entries()) {
    expect(call).toBe(index);
    expect(ids.slice(sampledFrom)).toEqual(calls[index]!.tokenIds);
    expect(logprobs).toEqual(calls[index]!.logprobs);
    expect(columns).toMatchObject({ trainerLogprobs: null, entropies: null, advantages: null, mask: null });
  }
});

test('a fork within a message shows the message from its beginning', async () => {
  const store = await writeFixtureRun(temporaryFolder(), { steps: 1 });
  const prompts = ['eins', 'elf'].map((text) => [...idsOf('S'), 261, 259, ...idsOf(text), 261]);
  const calls = ['eins', 'elf'].map((text, index) =>
    callOf([system('S'), user(text)], 'ja', {
      promptTokenIds: prompts[index]!,
      tokenIds: idsOf('ja'),
      logprobs: [0, 0],
    }),
  );
  const context = await playedBy(store, calls);
  const { turns } = await viewTokens(context, 'demo', '0.2.0.0');
  expect(turns[1]).toMatchObject({ shared: 2, ids: [259, ...idsOf('elf'), 261, ...idsOf('ja')] });
});

test('without a vocabulary ids are told, and no text', async () => {
  const store = await writeFixtureRun(temporaryFolder(), { steps: 1 });
  const key = layout.rolloutsKey({ run: 'demo', branch: 0, step: 1, group: 3 });
  const { attempts } = await decodeRollouts((await store.read(key))!, key);
  const { hasText, turns } = await viewTokens(contextOf(store), 'demo', '0.1.3.5');
  expect(hasText).toBe(false);
  for (const { call, ids, text, sampledFrom, shared } of turns) {
    const record = attempts[5]!.calls[call]!;
    expect(ids).toEqual([...record.promptTokenIds.slice(shared), ...record.tokenIds]);
    expect(sampledFrom).toBe(record.promptTokenIds.length - shared);
    expect(new Set(text)).toEqual(new Set(['']));
  }
});
