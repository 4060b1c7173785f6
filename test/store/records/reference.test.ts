/** Training options that stand elsewhere in a run's store: rewards after costs, another checkpoint's adapter. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';

import { FileStore } from '../../../store/bytes/file-store.ts';
import { decodeJson, encodeJson } from '../../../store/bytes/json.ts';
import { judgedKey, manifestKey } from '../../../store/layout.ts';
import { copyRun } from '../../../store/records/copy/copy-run.ts';
import { planPrune } from '../../../store/records/retention/prune.ts';
import { readManifest } from '../../../store/records/runs/run-reader.ts';
import { readStepVerdict } from '../../../store/records/groups/step-verdict.ts';
import { verifyRun } from '../../../store/records/verify/verify-run.ts';
import { makeRun } from './made-run.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

let root: string;
let store: FileStore;
beforeEach(() => {
  root = temporaryFolder();
  store = new FileStore(join(root, 'here'));
});

const problems = async (of: FileStore) => (await verifyRun(of, 'demo')).findings.problems.map(({ object }) => object);
const lean = { keepLast: 1, keepBest: [], keepEvery: null };

test('the verdict on a step has what long answers cost, and is verified with it', async () => {
  // Each answer is one of two tokens: half of the penalty.
  await makeRun(store, { steps: 2, train: { overlongBuffer: 2, overlongPenalty: 3 } });
  const verdict = await readStepVerdict(store, { run: 'demo', branch: 0, step: 1 });
  expect(verdict?.groups.map(({ rewards }) => rewards)).toEqual([
    [-1.5, -0.5],
    [-1.5, -0.5],
  ]);
  expect(await problems(store)).toEqual([]);
});

test('a verdict that a step under way trains with other costs is found', async () => {
  await makeRun(store, { steps: 2, train: { overlongBuffer: 2, overlongPenalty: 3 } });
  const place = { run: 'demo', branch: 0, step: 2 };
  rmSync(join(root, 'here', manifestKey(place)));
  const key = judgedKey({ ...place, group: 0 });
  const verdict = (await store.read(key))!;
  await store.replace(key, encodeJson({ ...(decodeJson(verdict, key) as object), overlongCosts: [1.5, 0] }));
  const found = (await verifyRun(store, 'demo')).findings.problems;
  expect(found).toContainEqual(
    expect.objectContaining({ object: key, finding: 'its rewards do not match the rollouts' }),
  );
});

/** Compared with step 2 of another run. */
async function makeCompared(): Promise<string> {
  await makeRun(store, { run: 'other', seed: 2, steps: 5 });
  const klReference = (await readManifest(store, { run: 'other', branch: 0, step: 2 }))!.adapter;
  await makeRun(store, { train: { klCoefficient: 0.1, klReference } });
  return klReference.key;
}

test('the adapter that a run is compared with is verified, copied with the run, and not pruned from its own', async () => {
  const key = await makeCompared();
  expect(await problems(store)).toEqual([]);
  const manifest = await readManifest(store, { run: 'demo', branch: 0, step: 1 });
  expect(manifest?.train?.klReference?.key).toBe(key);
  const { kept, pruned } = await planPrune(store, 'other', lean);
  expect(kept.find(({ checkpoint }) => checkpoint.step === 2)?.because).toBe('the run demo is compared with it');
  expect(pruned.map(({ step }) => step)).toEqual([1, 3]);
  const there = new FileStore(join(root, 'there'));
  const options = {
    isThorough: false,
    withPruned: false,
    signal: new AbortController().signal,
    onStep: () => undefined,
  };
  await copyRun(store, there, 'demo', options);
  expect(await problems(there)).toEqual([]);
  rmSync(join(root, 'there', key));
  expect(await problems(there)).toEqual([key]);
});
