/** A run's vocabulary, as the GPU worker packs it (`gpu-worker/tests/model/test_vocabulary.py`), and all that handles its files. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeEach, expect, test } from 'vitest';

import { FileStore } from '../../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../../store/bytes/json.ts';
import { blobKey, runKey, tokenTraceKey, vocabularyKey } from '../../../../store/layout.ts';
import { copyRun } from '../../../../store/records/copy/copy-run.ts';
import { planRunDeletion } from '../../../../store/records/retention/delete-run.ts';
import { planGarbage, removeGarbage } from '../../../../store/records/retention/garbage.ts';
import { readTokenTrace } from '../../../../store/records/groups/token-trace.ts';
import { readVocabulary } from '../../../../store/records/runs/vocabulary.ts';
import { verifyRun } from '../../../../store/records/verify/verify-run.ts';
import { makeRun } from '../made-run.ts';
import trace from '../token-trace.json' with { type: 'json' };
import written from '../vocabulary.json' with { type: 'json' };
import { temporaryFolder } from '../../../temporary-folder.ts';

const PACKED = Buffer.from(written.base64, 'base64');
const PLACE = { run: 'demo', branch: 0, step: 1 };
const DAY_MS = 86_400_000;

let root: string;
let store: FileStore;
beforeEach(() => {
  root = temporaryFolder();
  store = new FileStore(join(root, 'here'));
});

/** Does what `initialise` does. Returns the blob's hash. */
async function publish(run = 'demo', packed: Uint8Array = PACKED): Promise<string> {
  const pieces = await store.putBlob(packed);
  await store.publish(vocabularyKey(run), encodeJson({ schema: 1, pieces }));
  return pieces.sha256;
}

/** A run with a vocabulary, and what a step computed of its tokens. */
async function makeWhole(run = 'demo'): Promise<string> {
  await makeRun(store, { run, steps: 2 });
  await store.publish(tokenTraceKey({ ...PLACE, run }), Buffer.from(trace.base64, 'base64'));
  return publish(run);
}

const other = (): FileStore => new FileStore(join(root, 'there'));
const copy = (from: FileStore, to: FileStore) =>
  copyRun(from, to, 'demo', {
    isThorough: true,
    withPruned: false,
    signal: new AbortController().signal,
    onStep: () => undefined,
  });
const problems = async () => (await verifyRun(store, 'demo')).findings.problems;

test('bytes of tokens join to the text, and control tokens are known', async () => {
  await publish();
  const vocabulary = (await readVocabulary(store, 'demo'))!;
  const text = (...ids: number[]) => Buffer.concat(ids.map((id) => vocabulary.bytesOf(id))).toString();
  expect(text(0, 1, 2, 3, 20, 5)).toBe('a bé 日本<|end|>');
  expect([0, 5, 6, 7, 8].filter((id) => vocabulary.isControl(id))).toEqual([5, 6, 7]);
  expect(vocabulary.dropsFirstSpace).toBe(true);
});

test('an id without a token has no bytes', async () => {
  await publish();
  const vocabulary = (await readVocabulary(store, 'demo'))!;
  expect([4, 15, 21, -1, 1e9].map((id) => vocabulary.bytesOf(id).length)).toEqual([0, 0, 0, 0, 0]);
});

test('a run has none before it is stored, or once the blob is gone', async () => {
  expect(await readVocabulary(store, 'demo')).toBe(null);
  const sha256 = await publish();
  expect(await readVocabulary(store, 'demo')).not.toBe(null);
  rmSync(join(root, 'here', blobKey(sha256)));
  expect(await readVocabulary(store, 'demo')).toBe(null);
});

test.each([
  ['no gzip', Buffer.from('{}')],
  ['gzip without JSON', gzipSync('x')],
  ['pieces that are no text', gzipSync('{"schema":1,"dropsFirstSpace":false,"control":[],"pieces":[1]}')],
])('%s is a corrupt store', async (_, packed) => {
  await publish('demo', packed);
  await expect(readVocabulary(store, 'demo')).rejects.toThrow(/restore it from a copy/);
});

test('a vocabulary that unpacks to too much is refused', async () => {
  await publish('demo', gzipSync(Buffer.alloc(65 * 1024 ** 2)));
  await expect(readVocabulary(store, 'demo')).rejects.toThrow(/must be a vocabulary/);
});

test('a whole run is verified without a finding', async () => {
  await makeWhole();
  expect(await problems()).toEqual([]);
});

test('a copy has the vocabulary and what was computed of each token', async () => {
  await makeWhole();
  await copy(store, other());
  expect((await readVocabulary(other(), 'demo'))!.bytesOf(0)).toEqual(Buffer.from('a'));
  const traces = await Promise.all([store, other()].map((each) => each.read(tokenTraceKey(PLACE))));
  expect(traces[0]).toEqual(traces[1]);
  expect(await readTokenTrace(other(), PLACE)).not.toBe(null);
});

test('a copy whose vocabulary was lost is copied without', async () => {
  const sha256 = await makeWhole();
  rmSync(join(root, 'here', blobKey(sha256)));
  await copy(store, other());
  expect(await other().read(runKey('demo'))).not.toBe(null);
  expect(await readVocabulary(other(), 'demo')).toBe(null);
});

test('a copy of what another version wrote for display keeps its own', async () => {
  await makeWhole();
  await copy(store, other());
  const ours = Buffer.from('written by another version');
  await other().replace(tokenTraceKey(PLACE), ours);
  await copy(store, other());
  expect(Buffer.from((await other().read(tokenTraceKey(PLACE)))!)).toEqual(ours);
});

test('garbage collection keeps the vocabulary as long as a run names it', async () => {
  const sha256 = await makeWhole();
  await makeWhole('second');
  const later = Date.now() + DAY_MS;
  expect((await planGarbage(store, later)).objects).toEqual([]);
  rmSync(join(root, 'here', 'runs', 'demo'), { recursive: true });
  const removed = (await removeGarbage(store, later)).objects.map(({ key }) => key);
  expect(removed).not.toContain(blobKey(sha256));
  rmSync(join(root, 'here', 'runs', 'second'), { recursive: true });
  expect((await planGarbage(store, later)).objects.map(({ key }) => key)).toContain(blobKey(sha256));
});

test('a deleted run takes its vocabulary along if no other run has it', async () => {
  const sha256 = await makeWhole();
  const named = async () => (await planRunDeletion(store, 'demo')).blobs.map(({ key }) => key);
  expect(await named()).toContain(blobKey(sha256));
  await makeWhole('second');
  expect(await named()).not.toContain(blobKey(sha256));
});
