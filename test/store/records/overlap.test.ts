import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';

import { planTopUp } from '../../../core/plan/window.ts';
import { FileStore } from '../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { branchKey, manifestKey } from '../../../store/layout.ts';
import { openBranch } from '../../../store/records/runs/lineage.ts';
import { findPosition } from '../../../store/records/runs/positions.ts';
import { planPrune } from '../../../store/records/retention/prune.ts';
import { verifyRun } from '../../../store/records/verify/verify-run.ts';
import { makeBranch, makeRun } from './made-run.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

let root: string;
let store: FileStore;
beforeEach(() => {
  root = temporaryFolder();
  store = new FileStore(root);
});

const problems = async () => (await verifyRun(store, 'demo')).findings.problems.map(({ object }) => object);
const place = (step: number) => ({ run: 'demo', branch: 0, step });

test('a run whose steps overlap is what its plan says, on a branch and after an empty step, too', async () => {
  const made = await makeRun(store, { steps: 5, empty: 3, maxStaleness: 2, evals: { 0: 0.25, 4: 1 } });
  await store.publish(
    branchKey('demo', 1),
    encodeJson({ schema: 1, branch: 1, fromBranch: 0, fromStep: 4, requestId: 'a' }),
  );
  await makeBranch(store, made, 1, 4, 3);
  expect(await problems()).toEqual([]);
  // Samples of another checkpoint than the plan names have other inputs.
  const other = { ...made.positions[4]!, policy: made.positions[4]!.parent };
  expect(planTopUp(made.config, other)[0]?.inputsSha256).not.toBe(
    planTopUp(made.config, made.positions[4]!)[0]?.inputsSha256,
  );
});

test('it goes on with what the next steps would have sampled from, and from the last step before one that was not trained', async () => {
  const { positions } = await makeRun(store, { steps: 5, empty: 3, maxStaleness: 1 });
  const { policy, upcoming, parent } = positions[5]!;
  const located = await findPosition(store, 'demo');
  expect(located).toMatchObject({ step: 5, checkpoint: parent });
  expect(located.policies).toEqual([policy, ...upcoming!]);
  // Killed while step 4 trained: step 5 was played, and even decided.
  for (const step of [4, 5]) rmSync(join(root, manifestKey(place(step))));
  expect(await findPosition(store, 'demo')).toMatchObject({ step: 3, checkpoint: positions[3]!.parent });
});

test('the first steps of a branch sample from where it began, and from nothing before', async () => {
  const made = await makeRun(store, { steps: 6, maxStaleness: 2 });
  await openBranch(store, 'demo', { requestId: 'back', step: 4 });
  const policies = async () =>
    (await findPosition(store, 'demo')).policies?.map(({ branch, step }) => `${branch}@${step}`);
  expect(await policies()).toEqual(['0@4', '0@4', '0@4']);
  await makeBranch(store, made, 1, 4, 1);
  expect(await policies()).toEqual(['0@4', '0@4', '1@5']);
  const { step, checkpoint } = await findPosition(store, 'demo');
  expect([step, checkpoint.branch]).toEqual([5, 1]);
});

test('what steps in progress sample from is not pruned', async () => {
  const kept = async (maxStaleness: number) => {
    await makeRun(store, { steps: 8, maxStaleness, run: `run-${maxStaleness}` });
    const plan = await planPrune(store, `run-${maxStaleness}`, { keepLast: 1, keepBest: [], keepEvery: null });
    return plan.kept.map(({ checkpoint }) => checkpoint.step);
  };
  expect(await kept(0)).toEqual([0, 7, 8]);
  expect(await kept(2)).toEqual([0, 5, 6, 7, 8]);
});
