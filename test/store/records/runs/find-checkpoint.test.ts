import { beforeEach, expect, test } from 'vitest';

import type { Checkpoint, RunState } from '../../../../core/contract/contract.ts';
import { sha256Hex } from '../../../../core/text/hashes.ts';
import { parseCheckpointName } from '../../../../core/names/policy-name.ts';
import {
  findCheckpoint,
  readCheckpoint,
  findCurrentCheckpoint,
} from '../../../../store/records/runs/find-checkpoint.ts';
import { listCheckpoints } from '../../../../store/records/runs/checkpoints.ts';
import { openBranch } from '../../../../store/records/runs/lineage.ts';
import { requireRun } from '../../../../store/records/runs/run-reader.ts';
import type { FileStore } from '../../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../../store/bytes/json.ts';
import { evalKey, manifestKey, stateKey } from '../../../../store/layout.ts';
import { madeManifest } from '../made-manifest.ts';
import { makeBranch, makeRun } from '../made-run.ts';
import { temporaryStore } from '../../../temporary-folder.ts';

let store: FileStore;
beforeEach(() => {
  store = temporaryStore();
});

async function commit(branch: number, step: number): Promise<void> {
  await store.publish(manifestKey({ run: 'demo', branch, step }), encodeJson(madeManifest({ branch, step })));
}

test('a checkpoint has the hash of its manifest and of its adapter', async () => {
  await commit(1, 3);
  const bytes = await store.read(manifestKey({ run: 'demo', branch: 1, step: 3 }));
  expect(await readCheckpoint(store, { run: 'demo', branch: 1, step: 3 })).toEqual({
    run: 'demo',
    branch: 1,
    step: 3,
    manifestSha256: sha256Hex(bytes!),
    adapterSha256: sha256Hex('adapter 1 3'),
  });
  expect(await readCheckpoint(store, { run: 'demo', branch: 1, step: 4 })).toBeNull();
});

/** The checkpoint on which a run stands by its state. */
function standing(branch: number, step: number, adapter: string): Promise<Checkpoint | null> {
  const state = { run: 'demo', branch, step, adapterSha256: sha256Hex(adapter) };
  return findCurrentCheckpoint(store, state as RunState);
}

test('a run stands on the last commit by number, past steps without one', async () => {
  for (const step of [0, 2, 9, 10]) await commit(0, step);
  await store.publish(evalKey({ run: 'demo', branch: 0, step: 11 }), encodeJson({}));
  expect(await standing(0, 12, 'adapter 0 10')).toMatchObject({ branch: 0, step: 10 });
});

test('a branch without a commit of its own stands on one of the branch before, never on what was given up', async () => {
  for (const step of [0, 1, 2, 3]) await commit(0, step);
  expect(await standing(1, 1, 'adapter 0 1')).toMatchObject({ branch: 0, step: 1 });
  await commit(1, 2);
  expect(await standing(1, 2, 'adapter 1 2')).toMatchObject({ branch: 1, step: 2 });
});

test('an adapter that nothing has committed is none', async () => {
  await commit(0, 0);
  expect(await standing(0, 5, 'another')).toBeNull();
});

/** Steps 0 to 4, then back to step 2 and one more: evaluated are steps 0, 2 and 4 of branch 0, the abandoned one best. */
async function makeRolledBack(): Promise<void> {
  const made = await makeRun(store, { steps: 4, evals: { 0: 0.25, 2: 0.5, 4: 0.75 } });
  await openBranch(store, 'demo', { requestId: 'back', step: 2 });
  await makeBranch(store, made, 1, 2, 1);
  const { state } = await requireRun(store, 'demo');
  const adapterSha256 = (await readCheckpoint(store, { run: 'demo', branch: 1, step: 3 }))?.adapterSha256;
  await store.replace(stateKey('demo'), encodeJson({ ...state, branch: 1, step: 3, adapterSha256 }));
}

const find = (text: string) => findCheckpoint(store, parseCheckpointName(text)!);

test('a name finds the step, the last one or the best one: of the curve, or of a branch', async () => {
  await makeRolledBack();
  const found = async (text: string) => {
    const { branch, step } = await find(text);
    return [text, branch, step];
  };
  for (const expected of [
    ['demo@2', 0, 2],
    ['demo@3', 1, 3],
    ['demo~0@3', 0, 3],
    ['demo~1@3', 1, 3],
    ['demo', 1, 3],
    ['demo@latest', 1, 3],
    ['demo~0', 0, 4],
    ['demo~1@latest', 1, 3],
    ['demo@best', 0, 2],
    ['demo~0@best', 0, 4],
  ])
    expect(await found(String(expected[0]))).toEqual(expected);
});

test('of equally good checkpoints the later one is best', async () => {
  await makeRun(store, { steps: 3, evals: { 1: 0.5, 2: 0.5, 3: 0.25 } });
  expect(await find('demo@best')).toMatchObject({ branch: 0, step: 2 });
});

test('a step that trained nothing is evaluated with the weights of the one before it', async () => {
  await makeRun(store, { steps: 4, empty: 4, evals: { 1: 0.5, 4: 0.75 } });
  expect(await find('demo@best')).toMatchObject({ branch: 0, step: 3 });
  const evaluated = (await listCheckpoints(store, 'demo')).map(({ step, evaluation }) => [step, evaluation?.reward]);
  expect(evaluated).toEqual([
    [0, undefined],
    [1, 0.5],
    [2, undefined],
    [3, 0.75],
  ]);
  await expect(find('demo@4')).rejects.toThrow(
    'demo@4 is not committed (the newest before it is demo@3); pass that, or demo@latest',
  );
});

test('a name that finds nothing says what to name', async () => {
  await makeRolledBack();
  await expect(find('nope@best')).rejects.toThrow('no run nope in the store');
  const missing: [string, string, string][] = [
    ['demo@9', 'demo~1@9', 'demo~1@3'],
    ['demo~0@9', 'demo~0@9', 'demo~0@4'],
  ];
  for (const [asked, named, before] of missing)
    await expect(find(asked)).rejects.toThrow(
      `${named} is not committed (the newest before it is ${before}); pass that, or demo@latest`,
    );
  await openBranch(store, 'demo', { requestId: 'again', step: 2 });
  await expect(find('demo@4')).rejects.toThrow('(the newest before it is demo@2)');
  await expect(find('demo~1@best')).rejects.toThrow(
    'no checkpoint of branch 1 of demo has been evaluated; pass demo@latest, or a step',
  );
  await expect(find('demo~2')).rejects.toThrow(
    'branch 2 of demo has no committed step yet; wait for one, or name another run',
  );
});
