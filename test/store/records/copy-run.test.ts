import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';

import type { BlobRef } from '../../../core/contract/contract.ts';
import { copyRun, type CopyOptions } from '../../../store/records/copy/copy-run.ts';
import { FileStore } from '../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import * as layout from '../../../store/layout.ts';
import { planPrune, prune } from '../../../store/records/retention/prune.ts';
import { listRuns, readManifest, readState } from '../../../store/records/runs/run-reader.ts';
import { verifyRun } from '../../../store/records/verify/verify-run.ts';
import { makeBranch, makeRun } from './made-run.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

let root: string;
let here: FileStore;
let there: FileStore;
beforeEach(() => {
  root = temporaryFolder();
  [here, there] = [new FileStore(join(root, 'here')), new FileStore(join(root, 'there'))];
});

const place = (step: number, branch = 0) => ({ run: 'demo', branch, step });
const copy = (from: FileStore, to: FileStore, options: Partial<CopyOptions> = {}) =>
  copyRun(from, to, 'demo', {
    isThorough: false,
    withPruned: false,
    signal: new AbortController().signal,
    onStep: () => undefined,
    ...options,
  });

/** Everything in a store, but for its own name. */
function contents(name: string): Record<string, string> {
  const folder = join(root, name);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    statSync(join(folder, file)).isFile(),
  );
  return Object.fromEntries(
    files
      .filter((file) => file !== 'store.json')
      .toSorted()
      .map((file) => [file, readFileSync(join(folder, file), 'base64')]),
  );
}

const problems = async (store: FileStore) => (await verifyRun(store, 'demo')).findings.problems;
const pathOf = (name: string, key: string) => join(root, name, key);

function flip(file: string): void {
  const bytes = readFileSync(file);
  const middle = Math.floor(bytes.length / 2);
  bytes[middle] = bytes[middle]! ^ 1;
  writeFileSync(file, bytes);
}

test('a copy has the same bytes under the same keys, but for journals and the store’s own name', async () => {
  await makeRun(here, { still: 1, empty: 2, evals: { 0: 0.5, 3: 1 } });
  await here.id();
  const before = contents('here');
  const journal = await here.openJournal('runs/demo/journal/0.3/0');
  journal.append(new Uint8Array(3));
  journal.close();
  const { copied, present } = await copy(here, there);
  expect(contents('there')).toEqual(before);
  // State and curve are replaced, not copied: they are for people.
  expect([copied, present]).toEqual([Object.keys(before).length - 2, 0]);
  expect(await there.id()).not.toBe(await here.id());
  expect(await copy(here, there)).toMatchObject({ copied: 0, present: copied });
});

test('an interrupted copy is no run; copied again, it goes on where it was', async () => {
  await makeRun(here, { steps: 6 });
  const stop = new AbortController();
  const half = copy(here, there, {
    signal: stop.signal,
    onStep: (done) => done === 3 && stop.abort(new Error('enough')),
  });
  await expect(half).rejects.toThrow('enough');
  expect(await listRuns(there)).toEqual([]);
  expect(await readManifest(there, place(2))).not.toBeNull();
  const { present, copied } = await copy(here, there);
  expect(present).toBeGreaterThan(10);
  expect(present + copied).toBe(Object.keys(contents('here')).length - 2);
  expect(contents('there')).toEqual(contents('here'));
});

test('a run that is being written is taken up to its last commit, and later the rest', async () => {
  await makeRun(here);
  const whole = contents('here');
  const state = (await readState(here, 'demo'))!;
  const recorded = readFileSync(pathOf('here', layout.stateKey('demo')));
  const manifest = readFileSync(pathOf('here', layout.manifestKey(place(3))));
  rmSync(pathOf('here', layout.manifestKey(place(3))));
  await here.replace(layout.stateKey('demo'), encodeJson({ ...state, step: 2, state: 'running' }));
  await copy(here, there);
  expect(await problems(there)).toEqual([]);
  expect(Object.keys(contents('there')).filter((key) => key.includes('steps/3'))).toEqual([]);
  await here.publish(layout.manifestKey(place(3)), manifest);
  await here.replace(layout.stateKey('demo'), recorded);
  await copy(here, there);
  expect(contents('there')).toEqual(whole);
});

test('a run of that name with other contents is refused, and what differs is named', async () => {
  await makeRun(here);
  await makeRun(there, { seed: 2 });
  const before = contents('there');
  await expect(copy(here, there)).rejects.toThrow(
    /other contents.*seed: 2 → 1; step 0 of branch 0 differs.*nothing was copied/,
  );
  expect(contents('there')).toEqual(before);
});

test('a copy that is further than the original keeps its state', async () => {
  await makeRun(here);
  await copy(here, there);
  const state = (await readState(here, 'demo'))!;
  await here.replace(layout.stateKey('demo'), encodeJson({ ...state, step: 1, state: 'running' }));
  await copy(here, there);
  expect(await readState(there, 'demo')).toEqual(state);
});

test('pull repairs whatever is missing or broken here, and says what it was', async () => {
  await makeRun(here, { still: 1, evals: { 0: 0.5, 3: 1 } });
  await copy(here, there);
  const whole = contents('here');
  const { adapter, optimizer } = (await readManifest(here, place(2)))!;
  const broken = [
    adapter.key,
    optimizer.key,
    layout.manifestKey(place(1)),
    layout.manifestKey(place(3)),
    layout.rolloutsKey({ ...place(1), group: 0 }),
    layout.judgedKey({ ...place(2), group: 0 }),
    layout.evalRolloutsKey(place(3)),
    layout.runKey('demo'),
  ];
  for (const key of broken) flip(pathOf('here', key));
  truncateSync(pathOf('here', layout.runKey('demo')), 30);
  const missing = [(await readManifest(there, place(1)))!.adapter.key, layout.preparedKey('demo')];
  for (const key of missing) rmSync(pathOf('here', key));
  // The manifest of a step whose successor is whole is known to be broken.
  rmSync(pathOf('here', layout.manifestTimesKey(place(1))));
  expect((await problems(here)).length).toBeGreaterThan(5);
  const { repaired } = await copy(there, here, { isThorough: true });
  expect(repaired.toSorted()).toEqual(broken.toSorted());
  expect(contents('here')).toEqual(whole);
  expect(await problems(here)).toEqual([]);
});

test('what is broken in the source is not copied', async () => {
  await makeRun(here);
  const { adapter } = (await readManifest(here, place(2)))!;
  flip(pathOf('here', adapter.key));
  await expect(copy(here, there)).rejects.toMatchObject({
    type: 'StoreCorrupt',
    message: expect.stringContaining(adapter.key) as string,
  });
  expect(await readManifest(there, place(2))).toBeNull();
  expect(await listRuns(there)).toEqual([]);
});

const lean = { keepLast: 1, keepBest: [], keepEvery: null };
const numbers = (entries: readonly { step: number }[]) => entries.map(({ step }) => step);

async function isThere(store: FileStore, ref: BlobRef): Promise<boolean> {
  return (await store.blobBytes(ref)) !== null;
}

test('pruning keeps what it was told to keep, the first and the last two; the rest is marked, then gone', async () => {
  await makeRun(here, { steps: 9, evals: { 2: 0.9, 3: 0.1, 4: 0.8, 9: 0.5 } });
  const retention = { keepLast: 1, keepBest: [{ metric: 'reward', count: 1 }], keepEvery: 5 };
  const plan = await planPrune(here, 'demo', retention);
  expect(plan.kept.map(({ checkpoint, because }) => [checkpoint.step, because])).toEqual([
    [0, 'the run starts from it'],
    [2, 'one of the best 1 by reward'],
    [5, 'every 5th'],
    [8, 'a step in progress may need it'],
    [9, 'it is the current step of the run'],
  ]);
  const { adapter, optimizer, adapterConfig } = (await readManifest(here, place(3)))!;
  await here.replace(`${layout.viewPrefix(place(3))}/adapter/adapter_config.json`, new Uint8Array());
  expect(await prune(here, 'demo', retention)).toEqual(plan);
  expect([await isThere(here, adapter), await isThere(here, optimizer), await isThere(here, adapterConfig)]).toEqual([
    false,
    false,
    true,
  ]);
  expect(readdirSync(pathOf('here', 'runs/demo/branches/0/checkpoints'))).toEqual([]);
  const { findings } = await verifyRun(here, 'demo');
  expect(findings.problems).toEqual([]);
  expect(findings.tallies.get('adapters')).toMatchObject({ pruned: 5 });
  expect((await planPrune(here, 'demo', lean)).pruned.map(({ step }) => step)).toEqual([2, 5]);
});

test('blobs that a branch or another run needs stay', async () => {
  await makeBranch(here, await makeRun(here, { steps: 6 }), 1, 2, 1);
  await makeRun(here, { run: 'copy', steps: 3 });
  const plan = await planPrune(here, 'demo', lean);
  expect(plan.kept.find(({ checkpoint }) => checkpoint.step === 2)?.because).toBe('a branch starts from it');
  expect(plan.kept.filter(({ checkpoint }) => checkpoint.branch === 1)).toHaveLength(1);
  expect(numbers(plan.pruned)).toEqual([1, 3, 4]);
  await prune(here, 'demo', lean);
  expect((await verifyRun(here, 'copy')).findings.problems).toEqual([]);
  const { findings } = await verifyRun(here, 'demo');
  expect(findings.problems).toEqual([]);
  // The other run shares steps 1 and 3, and keeps their bytes: only those of step 4 went.
  expect(findings.tallies.get('adapters')).toMatchObject({ pruned: 1 });
});

test('nothing is pruned while a branch was begun that has no step yet', async () => {
  await makeRun(here, { steps: 6 });
  await here.publish('runs/demo/branches/1/branch.json', encodeJson({}));
  expect((await planPrune(here, 'demo', lean)).pruned).toEqual([]);
});

test('nothing goes that lies ahead of a run under way which makes the same bytes', async () => {
  await makeRun(here, { steps: 6 });
  await makeRun(here, { run: 'twin', steps: 6 });
  const state = (await readState(here, 'twin'))!;
  for (const step of [4, 5, 6]) rmSync(pathOf('here', `runs/twin/branches/0/steps/${step}`), { recursive: true });
  await here.replace(layout.stateKey('twin'), encodeJson({ ...state, step: 3, state: 'running' }));
  const { pruned, blobs } = await planPrune(here, 'demo', lean);
  expect([numbers(pruned), blobs]).toEqual([[1, 2, 3], []]);
  await here.replace(layout.stateKey('twin'), encodeJson({ ...state, step: 3, state: 'stopped' }));
  expect(numbers((await planPrune(here, 'demo', lean)).pruned)).toEqual([1, 2, 3, 4]);
});

test('a copy of a pruned run says so; what was pruned comes back when it is asked for', async () => {
  await makeRun(here, { steps: 6 });
  await copy(here, there);
  const whole = contents('here');
  await prune(here, 'demo', lean);
  expect(await copy(there, here, { isThorough: true })).toMatchObject({ copied: 0, repaired: [], pruned: 4 });
  const third = new FileStore(join(root, 'third'));
  expect(await copy(here, third)).toMatchObject({ pruned: 4 });
  expect(await problems(third)).toEqual([]);
  // The copy that was made before has it all, and keeps it.
  expect(await copy(here, there)).toMatchObject({ copied: 0 });
  expect(contents('there')).toEqual(whole);
  await copy(there, here, { isThorough: true, withPruned: true });
  expect(contents('here')).toMatchObject(whole);
  expect((await verifyRun(here, 'demo')).findings.tallies.get('adapters')).toMatchObject({ pruned: 0, problems: 0 });
});

test('the chat template of a run is copied with it, and its copy is held to its hash', async () => {
  const { config } = await makeRun(here, { chatTemplate: 'said: {{ messages[0].content }}' });
  const key = layout.blobKey(config.rollout.chatTemplateSha256!);
  await copy(here, there);
  expect(contents('there')[key]).toBe(contents('here')[key]);
  flip(pathOf('there', key));
  await copy(here, there, { isThorough: true });
  expect(await problems(there)).toEqual([]);
  rmSync(pathOf('here', key));
  await expect(copy(here, there)).rejects.toThrow('must be the chat template with this hash, but it is missing');
});
