/** The trail of a run's production: what is in effect follows from its rows alone. */
import { beforeEach, expect, test, vi } from 'vitest';

import type { FileStore } from '../../../../store/bytes/file-store.ts';
import {
  findBefore,
  findPromoted,
  promotionsInEffect,
  readPromotions,
  recordPromotion,
  type NewPromotion,
} from '../../../../store/records/runs/promotions.ts';
import { failureOf } from '../../bytes/failure-of.ts';
import { temporaryStore } from '../../../temporary-folder.ts';

let store: FileStore;
beforeEach(() => {
  store = temporaryStore();
});

const checkpointAt = (step: number) => ({
  run: 'demo',
  branch: 0,
  step,
  manifestSha256: 'a'.repeat(64),
  adapterSha256: String(step).repeat(64),
});

const row = (kind: NewPromotion['kind'], step: number, key: string | null = null): NewPromotion => ({
  kind,
  checkpoint: checkpointAt(step),
  by: 'ann',
  reason: null,
  evaluation: { reward: step / 10, scenarios: 20 },
  comparison: null,
  key,
});

const promote = (step: number, key: string | null = null) => recordPromotion(store, 'demo', row('promoted', step, key));
const current = async () => (await findPromoted(store, 'demo'))?.checkpoint.step ?? null;

async function back(): Promise<void> {
  const checkpoint = await findBefore(store, 'demo');
  await recordPromotion(store, 'demo', { ...row('back', 0), checkpoint });
}

test('the last promotion counts, each way back goes one further, and a refusal changes nothing', async () => {
  expect(await current()).toBeNull();
  for (const step of [1, 2, 3]) await promote(step);
  await recordPromotion(store, 'demo', row('refused', 4));
  expect(await current()).toBe(3);
  await back();
  expect(await current()).toBe(2);
  await promote(5);
  expect(await current()).toBe(5);
  for (const expected of [2, 1]) {
    await back();
    expect(await current()).toBe(expected);
  }
  expect((await failureOf(back())).message).toContain('demo@1 is the only one');
  const trail = await readPromotions(store, 'demo');
  expect(trail.map(({ number, kind, checkpoint }) => `${number} ${kind} ${checkpoint.step}`)).toEqual([
    '1 promoted 1',
    '2 promoted 2',
    '3 promoted 3',
    '4 refused 4',
    '5 back 2',
    '6 promoted 5',
    '7 back 2',
    '8 back 1',
  ]);
});

test('a promotion with a key is recorded once, however often and whenever it is repeated', async () => {
  const repeated = await Promise.all([promote(1, 'firing 3'), promote(1, 'firing 3'), promote(1, 'firing 3')]);
  expect(repeated.filter(({ created }) => created)).toHaveLength(1);
  await promote(2);
  expect(await promote(1, 'firing 3')).toMatchObject({ created: false, row: { number: 1 } });
  expect(await current()).toBe(2);
});

test('a promotion is decided from the rows that it follows, also if another one comes in between', async () => {
  await promote(1);
  const publish = store.publish.bind(store);
  vi.spyOn(store, 'publish').mockImplementationOnce(async (key, bytes) => {
    await promote(7);
    return publish(key, bytes);
  });
  await recordPromotion(store, 'demo', (rows) =>
    row(promotionsInEffect(rows).at(-1)?.checkpoint.step === 1 ? 'promoted' : 'refused', 3),
  );
  expect(await current()).toBe(7);
  expect((await readPromotions(store, 'demo')).map(({ kind }) => kind)).toEqual(['promoted', 'promoted', 'refused']);
});

test('promotions at the same time are all in the trail', async () => {
  await Promise.all(Array.from({ length: 10 }, (_, step) => promote(step)));
  const trail = await readPromotions(store, 'demo');
  expect(trail.map(({ number }) => number)).toEqual(Array.from({ length: 10 }, (_, index) => index + 1));
  expect(new Set(trail.map(({ checkpoint }) => checkpoint.step)).size).toBe(10);
});
