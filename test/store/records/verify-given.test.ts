/** `temper verify` on the ledger of a group: rows without a gap, none after the decision, and a verdict that follows. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';

import { FileStore } from '../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { givenKey } from '../../../store/layout.ts';
import { addGiven, closeLedger, type RewardRow } from '../../../store/records/rewards/given-rewards.ts';
import { judgeByGiven } from '../../../store/records/rewards/given-verdict.ts';
import { parseRollouts, type StoredRollouts } from '../../../store/records/groups/group-files.ts';
import { encodeRollouts, type Judged } from '../../../store/records/groups/trajectories.ts';
import { Findings } from '../../../store/records/verify/findings.ts';
import { verifyGiven } from '../../../store/records/verify/given.ts';
import { attemptOf, rolloutsOf } from './made-attempt.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const PLACE = { run: 'demo', branch: 0, step: 1, group: 0 };
const RULES = { external: {}, minimumGroupSize: 2, overlongBuffer: 0, overlongPenalty: 1 };
const AT = new Date(0).toISOString();

let root: string;
let store: FileStore;
let played: StoredRollouts;
beforeEach(async () => {
  root = temporaryFolder();
  store = new FileStore(root);
  const attempts = [0, 1].map((attempt) => attemptOf(attempt, [], { reward: null }));
  played = await parseRollouts(await encodeRollouts(rolloutsOf(attempts)), 'rollouts');
  for (const attempt of [0, 1]) await addGiven(store, PLACE, rewardOf(attempt, attempt));
});

const rewardOf = (attempt: number, reward: number): RewardRow => {
  return { schema: 1, kind: 'reward', attempt, reward, by: 'ann', note: null, at: AT, key: null };
};

async function problemsOf(judged: Judged | null): Promise<string[]> {
  const findings = new Findings('demo');
  await verifyGiven({ store, findings } as never, PLACE, played, judged, RULES);
  return findings.problems.map(({ object, finding }) => `${object.split('/').slice(-2).join('/')}: ${finding}`);
}

test('a decided group whose verdict follows from its rows is intact, and one that still waits', async () => {
  expect(await problemsOf(null)).toEqual([]);
  const { givenRows } = await closeLedger(store, PLACE, 'complete');
  expect(await problemsOf(judgeByGiven(played, givenRows, RULES))).toEqual([]);
});

test('a verdict with other rewards, or without the row that decides, is found', async () => {
  const { givenRows } = await closeLedger(store, PLACE, 'complete');
  const judged = judgeByGiven(played, givenRows, RULES);
  const found = await problemsOf({ ...judged, rewards: [0, 2] });
  expect(found).toEqual(['groups/0.judged.json: its rewards are not those that were given']);
  rmSync(join(root, givenKey(PLACE, 2)));
  expect(await problemsOf(judged)).toEqual([
    'groups/0.judged.json: its group has no row that says when it was decided',
  ]);
});

test('a row that is missing, comes too late or is none is found', async () => {
  await closeLedger(store, PLACE, 'complete');
  await store.publish(givenKey(PLACE, 3), encodeJson(rewardOf(1, 5)));
  expect(await problemsOf(null)).toEqual(['0.given/3.json: it was added after the group was decided']);
  rmSync(join(root, givenKey(PLACE, 1)));
  expect(await problemsOf(null)).toEqual(['0.given/1.json: it is missing, and later rows are there']);
  await store.publish(givenKey(PLACE, 1), encodeJson({ schema: 1, kind: 'reward' }));
  expect((await problemsOf(null))[0]).toMatch(/^groups\/0\.given: .*1\.json is not as Temper writes it/);
});
