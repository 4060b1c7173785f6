/** The ledger of given rewards, on a disk and in a bucket: what counts, and what is refused, whoever comes at what time. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';

import { FileStore } from '../../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../../store/bytes/json.ts';
import { openStore } from '../../../../store/bytes/open-store.ts';
import { givenKey } from '../../../../store/layout.ts';
import {
  addGiven,
  closeLedger,
  lastRewards,
  MOST_CHANGES,
  readGiven,
  type ComparisonRow,
  type RewardRow,
} from '../../../../store/records/rewards/given-rewards.ts';
import type { Store } from '../../../../store/store.ts';
import { BUCKET } from '../../../s3-server.ts';
import { sharedS3 } from '../../../shared-s3.ts';
import { temporaryFolder } from '../../../temporary-folder.ts';

const PLACE = { run: 'demo', branch: 0, step: 1, group: 2 };
const AT = '2026-11-27T08:00:00.000Z';

const rewardOf = (attempt: number, reward: number, more: Partial<RewardRow> = {}): RewardRow => {
  return { schema: 1, kind: 'reward', attempt, reward, by: null, note: null, at: AT, key: null, ...more };
};

await sharedS3();
const folder = temporaryFolder();

const STORES = {
  'on a disk': async () => new FileStore(join(folder, randomUUID())),
  'in a bucket': () => openStore(`s3://${BUCKET}/given/${randomUUID()}`),
};

describe.each(Object.entries(STORES))('a ledger %s', (_where, open) => {
  let store: Store;
  beforeEach(async () => {
    store = await open();
  });
  const outcomeOf = async (given: RewardRow | ComparisonRow): Promise<string> =>
    (await addGiven(store, PLACE, given)).outcome;

  test('keeps every row in order, and the last reward of an attempt counts', async () => {
    expect(await readGiven(store, PLACE)).toEqual([]);
    expect(await outcomeOf(rewardOf(0, 0.5, { by: 'ann', note: 'fine', metrics: { tone: 1 } }))).toBe('given');
    expect(await outcomeOf(rewardOf(1, -1))).toBe('given');
    expect(await outcomeOf(rewardOf(0, 0.25, { by: 'bob' }))).toBe('given');
    const rows = await readGiven(store, PLACE);
    expect(rows).toEqual([
      rewardOf(0, 0.5, { by: 'ann', note: 'fine', metrics: { tone: 1 } }),
      rewardOf(1, -1),
      rewardOf(0, 0.25, { by: 'bob' }),
    ]);
    expect([...lastRewards(rows)].map(([attempt, { reward }]) => [attempt, reward])).toEqual([
      [0, 0.25],
      [1, -1],
    ]);
  });

  test('writers at the same time lose no row', async () => {
    const givenRows = Array.from({ length: 8 }, (_, attempt) => rewardOf(attempt, attempt / 8));
    const added = await Promise.all(givenRows.map((given) => addGiven(store, PLACE, given)));
    expect(added.map(({ outcome }) => outcome)).toEqual(givenRows.map(() => 'given'));
    const rows = await readGiven(store, PLACE);
    expect(rows).toHaveLength(8);
    expect([...lastRewards(rows).keys()].toSorted((one, other) => one - other)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test('a reward given beside the decision is counted or refused, never both and never neither', async () => {
    await addGiven(store, PLACE, rewardOf(0, 1));
    const [added, decided] = await Promise.all([
      addGiven(store, PLACE, rewardOf(1, 0.5)),
      closeLedger(store, PLACE, 'timeout'),
    ]);
    const isCounted = decided.givenRows.some((given) => given.kind === 'reward' && given.attempt === 1);
    expect(added.outcome).toBe(isCounted ? 'given' : 'closed');
  });

  test('once it is closed, it takes nothing, says why it was closed, and is closed as it was', async () => {
    await addGiven(store, PLACE, rewardOf(0, 1));
    const first = await closeLedger(store, PLACE, 'complete');
    expect(await closeLedger(store, PLACE, 'timeout')).toEqual(first);
    expect(await addGiven(store, PLACE, rewardOf(1, 1))).toEqual({ outcome: 'closed', row: first.closed });
    expect(await outcomeOf(rewardOf(0, 0))).toBe('closed');
    // A repeated import gives again what counted already.
    expect(await outcomeOf(rewardOf(0, 1))).toBe('same');
    expect(await readGiven(store, PLACE)).toHaveLength(2);
  });

  test('a repeated request gives nothing twice, and its key belongs to its value', async () => {
    expect(await outcomeOf(rewardOf(0, 1, { key: 'k1' }))).toBe('given');
    expect(await outcomeOf(rewardOf(0, 0.5, { key: 'k2' }))).toBe('given');
    // The answer to the first request was lost: it does not take back the second.
    expect(await outcomeOf(rewardOf(0, 1, { key: 'k1' }))).toBe('same');
    expect(lastRewards(await readGiven(store, PLACE)).get(0)?.reward).toBe(0.5);
    expect(await outcomeOf(rewardOf(0, 0.75, { key: 'k1' }))).toBe('key-reused');
    expect(await outcomeOf(rewardOf(1, 1, { key: 'k1' }))).toBe('key-reused');
    await closeLedger(store, PLACE, 'complete');
    expect(await outcomeOf(rewardOf(0, 1, { key: 'k1' }))).toBe('same');
  });

  test('a reward that was changed too often keeps what it has, and others are still given', async () => {
    for (let number = 0; number < MOST_CHANGES; number++)
      await store.publish(givenKey(PLACE, number), encodeJson(rewardOf(0, number)));
    expect(await readGiven(store, PLACE)).toHaveLength(MOST_CHANGES);
    expect(await readGiven(store, PLACE, 90)).toHaveLength(MOST_CHANGES - 90);
    expect(await addGiven(store, PLACE, rewardOf(0, 0.5))).toMatchObject({
      outcome: 'full',
      row: { reward: MOST_CHANGES - 1 },
    });
    expect(await outcomeOf(rewardOf(0, MOST_CHANGES - 1))).toBe('same');
    expect(await outcomeOf(rewardOf(1, 0.5))).toBe('given');
  });

  test('the same value of the same giver is no row; another value, note or giver is', async () => {
    const ann = { by: 'ann' };
    expect(await outcomeOf(rewardOf(0, 1, ann))).toBe('given');
    expect(await outcomeOf(rewardOf(0, 1, ann))).toBe('same');
    expect(await outcomeOf(rewardOf(0, 1, { by: 'bob' }))).toBe('given');
    expect(await outcomeOf(rewardOf(0, 1, ann))).toBe('given');
    expect(await outcomeOf(rewardOf(0, 1, { ...ann, note: 'sure' }))).toBe('given');
    expect(await outcomeOf(rewardOf(0, 1, { ...ann, note: 'sure', metrics: { tone: 2 } }))).toBe('given');
  });

  test('comparisons are kept for each reviewer', async () => {
    const given = { schema: 1, by: null, note: null, at: AT, key: null } as const;
    const compared: ComparisonRow = { ...given, kind: 'comparison', left: 0, right: 1, answer: 'left' };
    expect(await outcomeOf({ ...compared, by: 'ann' })).toBe('given');
    expect(await outcomeOf({ ...compared, by: 'ann' })).toBe('same');
    expect(await outcomeOf({ ...compared, by: 'bob' })).toBe('given');
    expect(await outcomeOf({ ...compared, by: 'ann', answer: 'equal' })).toBe('given');
    expect(lastRewards(await readGiven(store, PLACE)).size).toBe(0);
  });
});

test('a row that is none is damage, and one of a later version is left alone', async () => {
  const store = new FileStore(join(folder, randomUUID()));
  const key = givenKey(PLACE, 0);
  await store.publish(key, encodeJson({ ...rewardOf(0, 1), reward: 'much' }));
  await expect(readGiven(store, PLACE)).rejects.toMatchObject({
    type: 'StoreCorrupt',
    message: expect.stringContaining(key),
  });
  const other = { ...PLACE, group: 3 };
  await store.publish(givenKey(other, 0), encodeJson({ ...rewardOf(0, 1), schema: 2 }));
  await expect(readGiven(store, other)).rejects.toMatchObject({ type: 'LaterVersion' });
});
