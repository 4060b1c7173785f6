import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { sha256Hex } from '../../core/hashes.ts';
import { readCheckpoint, readNewestCheckpoint } from '../../store/checkpoints.ts';
import { FileStore } from '../../store/file-store.ts';
import { encodeJson } from '../../store/json.ts';
import { evalKey, manifestKey } from '../../store/layout.ts';

let root: string;
let store: FileStore;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'temper-checkpoints-'));
  store = new FileStore(root);
});
afterEach(() => rmSync(root, { recursive: true }));

async function commit(branch: number, step: number): Promise<void> {
  const bytes = encodeJson({ schema: 1, branch, step, adapter: { sha256: sha256Hex(`adapter ${branch} ${step}`) } });
  await store.publish(manifestKey({ run: 'demo', branch, step }), bytes);
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

test('the newest checkpoint is the last commit by number, past steps without one', async () => {
  for (const step of [0, 2, 9, 10]) await commit(0, step);
  await commit(1, 30);
  await store.publish(evalKey({ run: 'demo', branch: 0, step: 11 }), encodeJson({}));
  expect(await readNewestCheckpoint(store, 'demo', 0)).toMatchObject({ branch: 0, step: 10 });
  expect(await readNewestCheckpoint(store, 'demo', 2)).toBeNull();
});
