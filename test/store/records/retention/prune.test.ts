/** Objects that pruning must leave alone, though no manifest refers to them yet. */
import { beforeEach, expect, test, vi } from 'vitest';

import { defaultRunConfig, type RunOptions } from '../../../../core/rules/run-defaults.ts';
import type { FileStore } from '../../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../../store/bytes/json.ts';
import * as layout from '../../../../store/layout.ts';
import { openBranch, requireWeights } from '../../../../store/records/runs/lineage.ts';
import { planPrune, prune } from '../../../../store/records/retention/prune.ts';
import { readCommit, readState } from '../../../../store/records/runs/run-reader.ts';
import { recordSchedule, recordScheduleDeleted } from '../../../../store/records/production/schedules.ts';
import { readPruned } from '../../../../store/records/runs/pruned.ts';
import { publishRun } from '../../../../store/records/runs/publish-run.ts';
import { readGroupSpending } from '../../../../store/records/judging/verdicts.ts';
import { makeRun } from '../made-run.ts';
import { temporaryStore } from '../../../temporary-folder.ts';

let store: FileStore;
beforeEach(() => {
  store = temporaryStore();
});

const LEAN = { keepLast: 1, keepBest: [], keepEvery: null };

/** Why steps of `demo` are kept that a lean pruning would remove. */
async function reasons(): Promise<Record<number, string>> {
  const { kept, pruned } = await planPrune(store, 'demo', LEAN);
  expect(kept.length + pruned.length).toBe(7);
  const told = kept.map(({ checkpoint, because }) => [checkpoint.step, because] as const);
  return Object.fromEntries(told.filter(([step]) => step > 0 && step < 5));
}

async function checkpointAt(step: number) {
  const { positions } = await makeRun(store, { steps: 6 });
  return positions[step]!.parent;
}

function begin(run: string, options: Partial<RunOptions>) {
  const config = defaultRunConfig({ run, agent: 'toy', baseModel: 'pocket', steps: 3, ...options });
  return publishRun(store, { config, agentCodeSha256: 'a'.repeat(64) });
}

test('the parent of a fork that has no step yet is kept, and so is the checkpoint that judges a run under way', async () => {
  await begin('child', { parent: await checkpointAt(2) });
  await begin('judged', { judge: 'engine/demo@3' });
  await begin('elsewhere', { judge: 'openai/demo@4' });
  expect(await reasons()).toEqual({ 2: 'the run child begins with it', 3: 'the run judged is judged by it' });
  await prune(store, 'demo', LEAN);
  await requireWeights(store, 'demo', 2);
  await requireWeights(store, 'demo', 3);
});

test('weights of all policies go and stay together, and what a league or a role of another run plays stays', async () => {
  const checkpoint = await checkpointAt(1);
  await begin('frozen', { roles: { user: { kind: 'checkpoint', checkpoint, policy: 'main' } } });
  const beside = await Promise.all(Array.from({ length: 7 }, (_, step) => addPolicy(step, step === 6 ? [3] : [])));
  expect(await reasons()).toEqual({ 1: 'it plays a role of the run frozen', 3: 'the league plays against it' });
  const { blobs } = await prune(store, 'demo', LEAN);
  expect(blobs.map(({ sha256 }) => sha256)).toEqual(expect.arrayContaining([2, 4].map((step) => beside[step]!.sha256)));
  const sizes = await Promise.all(beside.map((ref) => store.blobBytes(ref)));
  expect(sizes.map((bytes) => bytes !== null)).toEqual([true, true, false, true, false, true, true]);
  await expect(requireWeights(store, 'demo', 2)).rejects.toThrow('demo@2 must have its weights');
});

/** Rewrites a manifest, as if the step had trained a second policy, and a league had met these steps. */
async function addPolicy(step: number, met: number[]) {
  const place = { run: 'demo', branch: 0, step };
  const adapter = await store.putBlob(encodeJson({ policy: 'b', step }));
  const league = { past: met.map((of) => ({ branch: 0, step: of, played: 2, won: 1 })) };
  const { manifest } = (await readCommit(store, place))!;
  const policies = { b: { adapter, optimizer: adapter } };
  await store.replace(layout.manifestKey(place), encodeJson({ ...manifest, policies, league }));
  return adapter;
}

test('a run that has ended needs neither its parent nor its judge', async () => {
  await makeRun(store, { steps: 1, run: 'child', seed: 2 });
  await begin('other', { parent: await checkpointAt(2), judge: 'engine/demo@3' });
  const state = await readState(store, 'child');
  await store.replace(layout.stateKey('other'), encodeJson({ ...state, run: 'other', state: 'stopped' }));
  expect(await reasons()).toEqual({});
});

test('what the runs of a schedule begin with is kept: the one in hand, and the next', async () => {
  const parent = await checkpointAt(2);
  const firing = { schema: 1, firing: 'a', run: 'nightly-1', parent };
  await store.publish(layout.firingKey('nightly', 1), encodeJson(firing));
  expect(await reasons()).toEqual({ 2: 'a run of the schedule nightly begins with it' });
  const checkpoint = { ...parent, step: 4 };
  await store.publish(layout.conclusionKey('nightly', 1), encodeJson({ schema: 1, checkpoint }));
  expect(await reasons()).toEqual({ 4: 'the next run of the schedule nightly begins with it' });
});

test('what a schedule that has not fired begins with is kept, and its judge and reference, until it is deleted', async () => {
  const from = await checkpointAt(2);
  const { manifest } = (await readCommit(store, { ...from, step: 4 }))!;
  const train = { klCoefficient: 0.01, klReference: manifest.adapter };
  const config = defaultRunConfig({
    run: 'nightly',
    agent: 'toy',
    baseModel: 'pocket',
    steps: 1,
    judge: 'engine/demo@3',
    train,
  });
  await recordSchedule(store, 'nightly', { config, from });
  expect(await reasons()).toEqual({
    2: 'the schedule nightly begins with it',
    3: 'the runs of the schedule nightly are judged by it',
    4: 'runs of the schedule nightly are compared with it',
  });
  await recordScheduleDeleted(store, 'nightly');
  expect(await reasons()).toEqual({});
});

test('a branch that is opened while a large store is being read keeps what it begins with', async () => {
  await makeRun(store, { steps: 6 });
  await makeRun(store, { run: 'other', seed: 2, steps: 1 });
  const read = store.read.bind(store);
  let opened = 0;
  // The manifests of other runs are read after all of this one.
  vi.spyOn(store, 'read').mockImplementation(async (key) => {
    if (key === layout.manifestKey({ run: 'other', branch: 0, step: 1 }) && (opened += 1) === 1)
      await openBranch(store, 'demo', { requestId: 'back', step: 3 });
    return read(key);
  });
  const { pruned } = await prune(store, 'demo', LEAN);
  expect(opened).toBe(1);
  expect(pruned).toEqual([]);
  await requireWeights(store, 'demo', 3);
});

test('no manifest is read twice, whatever needs what', async () => {
  await makeRun(store, { steps: 6 });
  await makeRun(store, { run: 'other', seed: 2, steps: 3 });
  const read = vi.spyOn(store, 'read');
  await prune(store, 'demo', LEAN);
  const manifests = read.mock.calls.map(([key]) => key).filter((key) => key.endsWith('/manifest.json'));
  expect(manifests).toHaveLength(new Set(manifests).size);
  expect(manifests).toHaveLength(7 + 4);
});

test('an adapter that another run was started with stays, though no manifest of it has the checkpoint', async () => {
  await checkpointAt(2);
  const { manifest } = (await readCommit(store, { run: 'demo', branch: 0, step: 2 }))!;
  await begin('started', { startAdapter: { weights: manifest.adapter, config: manifest.adapterConfig } });
  await prune(store, 'demo', LEAN);
  const sizes = await Promise.all([manifest.adapter, manifest.optimizer].map((ref) => store.blobBytes(ref)));
  expect(sizes).toEqual([manifest.adapter.bytes, null]);
});

test('a step is marked before its first blob goes: who is killed between leaves nothing that reads as corrupt', async () => {
  await makeRun(store, { steps: 6 });
  vi.spyOn(store, 'removeBlob').mockRejectedValueOnce(new Error('killed'));
  await expect(prune(store, 'demo', LEAN)).rejects.toThrow('killed');
  for (const step of [1, 2, 3, 4]) expect(await readPruned(store, { run: 'demo', branch: 0, step })).toBe(true);
});

test.each(['null', '{}', '{"schema":1,"pruned":"no"}'])('a mark that is %s is told as corrupt', async (text) => {
  await store.publish(layout.prunedKey({ run: 'demo', branch: 0, step: 1 }), Buffer.from(text));
  await expect(readPruned(store, { run: 'demo', branch: 0, step: 1 })).rejects.toThrow('pruned.json is not as');
});

test('an answer of a judge that is of another form is told as corrupt, and no cost', async () => {
  const place = { run: 'demo', branch: 0, step: 1, group: 0 };
  await store.publish(layout.groupAnswerKey(place, 'a'.repeat(64), 0), Buffer.from('{"promptTokens":"x"}'));
  await expect(readGroupSpending(store, place)).rejects.toThrow('is not as Temper writes it');
});
