/** Records of a later version of Temper are right: they are read where they can be, and never called damage. */
import { readFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';

import { describeError } from '../../../cli/command-line/errors.ts';
import type { FileStore } from '../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { judgedKey, manifestKey, prunedKey, runKey, stepVerdictKey, verdictKey } from '../../../store/layout.ts';
import { isBrokenJson } from '../../../store/records/copy/compare.ts';
import { parseCommit } from '../../../store/records/runs/manifest.ts';
import { readPruned } from '../../../store/records/runs/pruned.ts';
import { readGroup, readRun } from '../../../store/records/runs/run-reader.ts';
import { readStepVerdict } from '../../../store/records/groups/step-verdict.ts';
import { decodeRollouts, encodeRollouts } from '../../../store/records/groups/trajectories.ts';
import { storedVerdicts } from '../../../store/records/judging/verdicts.ts';
import { verifyRun } from '../../../store/records/verify/verify-run.ts';
import { madeManifest } from './made-manifest.ts';
import { makeRun } from './made-run.ts';
import { temporaryStore } from '../../temporary-folder.ts';

const KEY = manifestKey({ run: 'demo', branch: 0, step: 1 });

/** The same cases as in gpu-worker/tests/commits/test_later_version.py. */
const CASES = JSON.parse(readFileSync(new URL('./later-versions.json', import.meta.url), 'utf8')) as Record<
  string,
  { set: [string[], unknown]; typescript: string; python: string }
>;

function changed(manifest: object, [path, value]: [string[], unknown]): Uint8Array {
  const copy = structuredClone(manifest) as Record<string, unknown>;
  let place = copy;
  for (const name of path.slice(0, -1)) place = place[name] as Record<string, unknown>;
  place[path.at(-1)!] = value;
  return encodeJson(copy);
}

function outcomeOf(bytes: Uint8Array): string {
  try {
    parseCommit(bytes, KEY);
    return 'read';
  } catch (error) {
    return String((error as { type?: unknown }).type);
  }
}

test.each(Object.entries(CASES))('a manifest with %s', (_name, { set, typescript }) => {
  const manifest = madeManifest({ branch: 0, step: 1 });
  expect(outcomeOf(encodeJson(manifest))).toBe('read');
  expect(outcomeOf(changed(manifest, set))).toBe(typescript);
});

test('says what this version does not know, and how to go on; commands end with exit code 2', () => {
  const bytes = changed(madeManifest({ branch: 0, step: 1 }), [['schema'], 2]);
  const message = `${KEY} was made by a later version of Temper (schema 2; this version knows 1); upgrade Temper on this host, and leave the file as it is`;
  expect(() => parseCommit(bytes, KEY)).toThrow(message);
  try {
    parseCommit(bytes, KEY);
  } catch (error) {
    expect(describeError(error)).toEqual({ text: `temper: ${message}`, exitCode: 2 });
  }
});

let store: FileStore;
beforeEach(() => {
  store = temporaryStore();
});

const place = { run: 'demo', branch: 0, step: 1 };
const group = { ...place, group: 0 };

/** The reader of each record, and its key. */
const READERS: Readonly<Record<string, [string, () => Promise<unknown>]>> = {
  'run.json': [runKey('demo'), () => readRun(store, 'demo')],
  'a verdict on a step': [stepVerdictKey(place), () => readStepVerdict(store, place)],
  'a mark of a pruned step': [prunedKey(place), () => readPruned(store, place)],
  "a judge's verdict": [verdictKey('a'), () => storedVerdicts(store).read('a')],
};

test.each(Object.entries(READERS))('%s of a later schema is of a later version', async (_name, [key, read]) => {
  await store.replace(key, encodeJson({ schema: 2, whatever: [] }));
  await expect(read()).rejects.toMatchObject({ type: 'LaterVersion' });
  await expect(read()).rejects.toThrow(`${key} was made by a later version of Temper (schema 2`);
});

test('rollouts and the verdict on them, too', async () => {
  await makeRun(store, { steps: 1 });
  const judged = judgedKey(group);
  await store.replace(judged, encodeJson({ schema: 2 }));
  await expect(readGroup(store, group)).rejects.toMatchObject({ type: 'LaterVersion' });
  const header = { schema: 2 as 1, inputsSha256: 'a', branch: 0, step: 1, adapterSha256: null, attempts: 0 };
  const bytes = await encodeRollouts({ header, attempts: [] });
  await expect(decodeRollouts(bytes, 'k')).rejects.toMatchObject({ type: 'LaterVersion' });
});

test('a verification names them, and tells to upgrade; a copy does not take them for damage', async () => {
  await makeRun(store, { steps: 2 });
  const key = manifestKey({ ...place, step: 2 });
  const bytes = changed(JSON.parse(new TextDecoder().decode((await store.read(key)) ?? undefined)) as object, [
    ['schema'],
    2,
  ]);
  await store.replace(key, bytes);
  const { problems } = (await verifyRun(store, 'demo')).findings;
  expect(problems.find(({ object }) => object === key)).toMatchObject({
    finding: `${key} was made by a later version of Temper (schema 2; this version knows 1)`,
    remedy: 'upgrade Temper on this host, and leave the file as it is',
  });
  expect(isBrokenJson(bytes, key)).toBe(false);
  expect(isBrokenJson(new TextEncoder().encode('{"a":'), key)).toBe(true);
});
