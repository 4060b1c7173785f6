/** Removals of `temper gc`, and above all what it leaves alone. */
import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';

import { defaultRunConfig } from '../../../../core/rules/run-defaults.ts';
import { FileStore } from '../../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../../store/bytes/json.ts';
import { hashBytes } from '../../../../store/bytes/sha256.ts';
import * as layout from '../../../../store/layout.ts';
import { planGarbage, removeGarbage, type GarbagePlan } from '../../../../store/records/retention/garbage.ts';
import { markPruned } from '../../../../store/records/runs/pruned.ts';
import { readCommit, readState } from '../../../../store/records/runs/run-reader.ts';
import { recordSchedule } from '../../../../store/records/production/schedules.ts';
import { verifyRun } from '../../../../store/records/verify/verify-run.ts';
import { makeRun } from '../made-run.ts';
import { temporaryFolder } from '../../../temporary-folder.ts';

let root: string;
let store: FileStore;
beforeEach(() => {
  root = temporaryFolder();
  store = new FileStore(root);
});

const DAY_MS = 86_400_000;
/** Everything was written just now; so much later nothing was. */
const later = (): number => Date.now() + DAY_MS;
const keysOf = ({ objects }: GarbagePlan): string[] => objects.map(({ kind, key }) => `${kind} ${key}`).toSorted();
const put = (text: string) => store.putBlob(new TextEncoder().encode(text));

function age(key: string, days: number): void {
  const then = new Date(Date.now() - days * DAY_MS);
  utimesSync(join(root, key), then, then);
}

function everyFile(): string[] {
  const found = readdirSync(root, { recursive: true, encoding: 'utf8', withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

test('a run that is whole keeps every byte, its template, examples and scenarios included', async () => {
  await makeRun(store, { steps: 2, chatTemplate: '{{ messages }}', warmStart: 1 });
  await makeRun(store, { run: 'other', seed: 2, steps: 1 });
  const before = everyFile();
  expect(await removeGarbage(store, later())).toEqual({ objects: [], notes: [] });
  expect(everyFile()).toEqual(before);
});

test('blobs of a run whose folder was deleted by hand go; those that another run has stay', async () => {
  await makeRun(store, { steps: 1 });
  await makeRun(store, { run: 'longer', steps: 2 });
  const { manifest } = (await readCommit(store, { run: 'longer', branch: 0, step: 2 }))!;
  rmSync(join(root, 'runs', 'longer'), { recursive: true });
  const removed = await removeGarbage(store, later());
  expect(keysOf(removed)).toContain(`blob ${manifest.adapter.key}`);
  expect(removed.objects.every(({ kind }) => kind === 'blob')).toBe(true);
  expect((await verifyRun(store, 'demo')).findings.problems).toEqual([]);
  expect(await planGarbage(store, later())).toEqual({ objects: [], notes: [] });
});

test('what was written lately stays: blobs, unfinished writes, folders without a run.json', async () => {
  const { key } = await put('weights');
  mkdirSync(join(root, 'runs', 'arriving'), { recursive: true });
  writeFileSync(join(root, 'runs/arriving/prepared.json'), '{}');
  const torn = 'blobs/.abc.77.0a1b2c3d.tmp';
  writeFileSync(join(root, torn), 'torn');
  const dayAgo = () => Date.now() - DAY_MS;
  expect((await planGarbage(store, dayAgo())).objects).toEqual([]);
  // A folder that is being written may be a copy: blobs that it has not named yet were there before.
  for (const old of [torn, key]) age(old, 2);
  const plan = await planGarbage(store, dayAgo());
  expect(keysOf(plan)).toEqual([`unfinished ${torn}`]);
  expect(plan.notes).toEqual([expect.stringContaining('runs/arriving')]);
  age('runs/arriving/prepared.json', 2);
  expect(keysOf(await removeGarbage(store, dayAgo()))).toEqual([
    `blob ${key}`,
    'folder runs/arriving/prepared.json',
    `unfinished ${torn}`,
  ]);
  expect(everyFile()).toEqual([]);
  expect(readdirSync(join(root, 'runs'))).toEqual([]);
});

test('a blob that a worker puts again while garbage is being looked for is not removed', async () => {
  const ref = await put('weights');
  age(ref.key, 2);
  const describe = store.describe.bind(store);
  let lists = 0;
  vi.spyOn(store, 'describe').mockImplementation(async function* (prefix) {
    yield* describe(prefix);
    // After it was listed: its age is known, and only its removal looks again.
    if (prefix === 'blobs' && (lists += 1) === 1) await put('weights');
  });
  expect((await removeGarbage(store, Date.now() - DAY_MS)).objects).toEqual([]);
  expect(lists).toBe(1);
  expect(await store.blobBytes(ref)).toBe(7);
});

test('weights that a killed pruning left behind are garbage; a checkpoint that has them unpruned keeps them', async () => {
  await makeRun(store, { steps: 3 });
  const { manifest } = (await readCommit(store, { run: 'demo', branch: 0, step: 1 }))!;
  await markPruned(store, { run: 'demo', branch: 0, step: 1 }, true);
  const left = [manifest.adapter, manifest.optimizer].map(({ key }) => `blob ${key}`).toSorted();
  expect(keysOf(await planGarbage(store, later()))).toEqual(left);
  await makeRun(store, { run: 'twin', steps: 3 });
  expect(keysOf(await planGarbage(store, later()))).toEqual([]);
});

test('journals of runs that failed, were stopped or cancelled go; of runs under way they stay', async () => {
  await makeRun(store, { steps: 1 });
  const state = (await readState(store, 'demo'))!;
  const journals: Record<string, string> = {};
  for (const name of ['failed', 'stopped', 'cancelled', 'running', 'paused', 'completed'] as const) {
    const config = defaultRunConfig({ run: name, agent: 'toy', baseModel: 'pocket', steps: 1 });
    await store.publish(
      layout.runKey(name),
      encodeJson({ schema: 1, config, agentCodeSha256: 'a'.repeat(64), versions: {}, parent: null }),
    );
    await store.replace(layout.stateKey(name), encodeJson({ ...state, run: name, state: name }));
    const prefix = layout.groupJournalPrefix({ run: name, branch: 0, step: 1, group: 0 });
    const journal = await store.openJournal(prefix);
    journal.append(new TextEncoder().encode('paid'));
    journal.close();
    journals[name] = `journal ${prefix}/0.journal`;
  }
  const { failed, stopped, cancelled, completed } = journals;
  expect(keysOf(await removeGarbage(store, later()))).toEqual([cancelled, completed, failed, stopped]);
  expect(keysOf(await planGarbage(store, later()))).toEqual([]);
  expect(readdirSync(join(root, 'runs/failed')).toSorted()).toEqual(['run.json', 'state.json']);
  expect((await store.openJournal('runs/running/journal/0.1/0')).existing).toHaveLength(1);
});

test('what only a schedule names stays, although it has never fired', async () => {
  const chatTemplate = 'template of its runs';
  const template = await put(chatTemplate);
  const rollout = { chatTemplateSha256: hashBytes(new TextEncoder().encode(chatTemplate)) };
  const config = defaultRunConfig({ run: 'nightly', agent: 'toy', baseModel: 'pocket', steps: 1, rollout });
  expect(keysOf(await planGarbage(store, later()))).toEqual([`blob ${template.key}`]);
  await recordSchedule(store, 'nightly', { config, from: null });
  expect(keysOf(await planGarbage(store, later()))).toEqual([]);
});

test("what a script has stored since its last commit may be its next step's: it stays until the run is closed", async () => {
  await makeRun(store, { steps: 1 });
  const file = (await store.read(layout.runKey('demo')))!;
  const loop = { project: 'my', model: 'demo' };
  await store.replace(
    layout.runKey('demo'),
    encodeJson({ ...(JSON.parse(Buffer.from(file).toString()) as object), loop }),
  );
  const state = (await readState(store, 'demo'))!;
  await store.replace(layout.stateKey('demo'), encodeJson({ ...state, state: 'running' }));
  for (const step of [0, 1]) age(layout.manifestKey({ run: 'demo', branch: 0, step }), 3);
  const [older, dataset] = [await put('before the commit'), await put('chats')];
  age(older.key, 4);
  age(dataset.key, 2);
  const plan = await planGarbage(store, Date.now() - DAY_MS);
  expect(keysOf(plan)).toEqual([`blob ${older.key}`]);
  expect(plan.notes).toEqual([expect.stringContaining('since the last commit of demo')]);
  await store.replace(layout.stateKey('demo'), encodeJson({ ...state, state: 'stopped' }));
  expect(keysOf(await planGarbage(store, Date.now() - DAY_MS))).toEqual(
    [dataset, older].map(({ key }) => `blob ${key}`).toSorted(),
  );
});
