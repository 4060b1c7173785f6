import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

import type { Checkpoint, RunState } from '../../../core/contract.ts';
import { sha256Hex } from '../../../core/hashes.ts';
import { readCheckpoint, readStanding } from '../../../store/records/find-checkpoint.ts';
import { FileStore } from '../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { evalKey, manifestKey } from '../../../store/layout.ts';
import { madeManifest } from './made-manifest.ts';

let root: string;
let store: FileStore;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'temper-checkpoints-'));
  store = new FileStore(root);
});
afterEach(() => rmSync(root, { recursive: true }));

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

/** As a run's state tells where it stands. */
function standing(branch: number, step: number, adapter: string): Promise<Checkpoint | null> {
  const state = { run: 'demo', branch, step, adapterSha256: sha256Hex(adapter) };
  return readStanding(store, state as RunState);
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
