/** Refusals as programs read them: a reason of a fixed list, for every way in which rewards are given. */
import { beforeEach, expect, test } from 'vitest';

import { EXTERNAL, isAwaited, REVIEW } from '../../../../core/rules/external-rewards.ts';
import { encodeJson } from '../../../../store/bytes/json.ts';
import type { FileStore } from '../../../../store/bytes/file-store.ts';
import { branchKey } from '../../../../store/layout.ts';
import { closeLedger } from '../../../../store/records/rewards/given-rewards.ts';
import { openGiver, type RefusedReward, type RewardRefusal } from '../../../../store/records/rewards/give-reward.ts';
import type { GivenReward } from '../../../../store/records/rewards/given-problems.ts';
import { awaitRewards } from '../../../cli/review/awaited-run.ts';
import { temporaryStore } from '../../../temporary-folder.ts';

let store: FileStore;
beforeEach(async () => {
  store = temporaryStore();
  await awaitRewards(store);
  await (await openGiver(store, 'demo')).give({ attempt: '0.1.1.0', reward: 1, key: 'k' });
  await closeLedger(store, { run: 'demo', branch: 0, step: 1, group: 1 }, 'timeout');
});

const REFUSED: Readonly<Record<Exclude<RewardRefusal, 'abandoned-branch' | 'too-many-changes'>, GivenReward>> = {
  'bad-attempt': { attempt: '1', reward: 1 },
  'unknown-attempt': { attempt: '0.1.0.9', reward: 1 },
  'failed-attempt': { attempt: '0.1.1.3', reward: 1 },
  'bad-value': { attempt: '0.1.0.0', reward: Number.NaN },
  decided: { attempt: '0.1.1.1', reward: 1 },
  'key-reused': { attempt: '0.1.1.0', reward: 2, key: 'k' },
};

test.each(Object.entries(REFUSED))('%s, checked or given', async (reason, given) => {
  const giver = await openGiver(store, 'demo');
  const refused: RefusedReward | null = await giver.check(given);
  expect(refused).toMatchObject({ outcome: 'refused', reason });
  expect(await giver.give(given)).toEqual(refused);
});

test('abandoned-branch, after a rollback', async () => {
  const branch = { schema: 1, branch: 1, fromBranch: 0, fromStep: 0, requestId: 'r' };
  await store.publish(branchKey('demo', 1), encodeJson(branch));
  const giver = await openGiver(store, 'demo');
  expect(await giver.give({ attempt: '0.1.0.0', reward: 1 })).toMatchObject({ reason: 'abandoned-branch' });
});

test('what is given says how many attempts of the group still lack a reward', async () => {
  const giver = await openGiver(store, 'demo');
  expect(await giver.check({ attempt: '0.1.0.0', reward: 1 })).toBeNull();
  expect(await giver.give({ attempt: '0.1.0.0', reward: 1 })).toMatchObject({ outcome: 'given', missing: 2 });
  expect(await giver.give({ attempt: '0.1.0.0', reward: 1 })).toMatchObject({ outcome: 'same', missing: 2 });
});

test('rewards are awaited where they are given from outside, or by reviewers', () => {
  expect([EXTERNAL, REVIEW, 'openai/gpt-5-mini', null].map(isAwaited)).toEqual([true, true, false, false]);
});
