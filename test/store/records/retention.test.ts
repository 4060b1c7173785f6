/** What a run keeps of its weights as it goes. */
import { beforeEach, expect, test, vi } from 'vitest';

import type { BlobRef } from '../../../core/contract/contract.ts';
import { FileStore } from '../../../store/bytes/file-store.ts';
import { branchKey, stateKey } from '../../../store/layout.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { listCheckpoints } from '../../../store/records/runs/checkpoints.ts';
import { copyRun } from '../../../store/records/copy/copy-run.ts';
import { findTrainedPolicy } from '../../../store/records/runs/find-policy.ts';
import { requireUnprunedStep, requireWeights } from '../../../store/records/runs/lineage.ts';
import { KEPT_WHOLE, prune, pruneAfterStep } from '../../../store/records/retention/prune.ts';
import { readCommit, readState } from '../../../store/records/runs/run-reader.ts';
import { verifyRun } from '../../../store/records/verify/verify-run.ts';
import { temporaryFolder, temporaryStore } from '../../temporary-folder.ts';
import { makeRun } from './made-run.ts';

const STEPS = 24;
/** Best at step 8; the last evaluations are later than the step after which weights are pruned. */
const EVALS = { 0: 0, 4: 1, 8: 5, 12: 2, 20: 9, 24: 9 };

let store: FileStore;
beforeEach(async () => {
  store = temporaryStore();
  await makeRun(store, { steps: STEPS, evals: EVALS });
});

const pruneAfter = (step: number, from = store, check: () => void = () => undefined) =>
  pruneAfterStep(from, { run: 'demo', steps: STEPS }, { branch: 0, step }, check);

async function states(from = store): Promise<Record<string, number[]>> {
  const byState: Record<string, number[]> = {};
  for (const { step, weights } of await listCheckpoints(from, 'demo')) (byState[weights] ??= []).push(step);
  return byState;
}

const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

const AFTER_20 = { kept: [0, 8, ...range(11, 24)], adapter: [4], pruned: [1, 2, 3, 5, 6, 7, 9, 10] };
const AFTER_24 = {
  kept: [0, 8, ...range(15, 24)],
  adapter: [4, 12],
  pruned: [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14],
};

test('the newest checkpoints stay whole, of older ones the best and the adapters of evaluated ones, and step 0', async () => {
  expect(range(15, 24)).toHaveLength(KEPT_WHOLE);
  await pruneAfter(20);
  expect(await states()).toEqual(AFTER_20);
  await pruneAfter(24);
  expect(await states()).toEqual(AFTER_24);
});

test('a run in progress is pruned every tenth step and after its last one; what is later than the step stays', async () => {
  expect(await pruneAfter(19)).toBeNull();
  expect(await pruneAfter(23)).toBeNull();
  expect((await pruneAfter(10))!.pruned).toEqual([]);
  expect((await pruneAfter(20))!.pruned.length).toBe(9);
  expect((await pruneAfter(20))!.pruned).toEqual([]);
});

test('optimizer states are gone, adapters are there to be sampled from, and verification finds nothing wrong', async () => {
  await pruneAfter(24);
  const { manifest } = (await readCommit(store, { run: 'demo', branch: 0, step: 4 }))!;
  expect([await store.blobBytes(manifest.adapter), await store.blobBytes(manifest.optimizer)]).toEqual([
    manifest.adapter.bytes,
    null,
  ]);
  expect((await findTrainedPolicy(store, { run: 'demo', branch: null, step: 4 })).adapter).toEqual(manifest.adapter);
  await expect(findTrainedPolicy(store, { run: 'demo', branch: null, step: 5 })).rejects.toThrow('were pruned');
  const { findings } = await verifyRun(store, 'demo');
  expect(findings.problems).toEqual([]);
  expect(findings.tallies.get('adapters')?.pruned).toBe(11);
  expect(findings.tallies.get('optimizer states')?.pruned).toBe(13);
});

test('an adapter that is lost is missing, whether or not the optimizer state beside it was pruned', async () => {
  await pruneAfter(24);
  const { manifest } = (await readCommit(store, { run: 'demo', branch: 0, step: 4 }))!;
  await store.removeBlob(manifest.adapter);
  expect((await states())['missing']).toEqual([4]);
  expect((await verifyRun(store, 'demo')).findings.problems.map(({ object }) => object)).toEqual([
    manifest.adapter.key,
  ]);
});

test('a step without its optimizer state cannot be trained further, and the message says what can be done', async () => {
  await pruneAfter(24);
  const refusal =
    'demo@4 must have its optimizer state to be trained further, but pruning removed it; choose a step that temper checkpoints demo lists as kept, start a new run with its adapter (temper export demo@4, then temper train --adapter FOLDER), or bring it back from a copy: temper checkpoints pull demo STORE --with-pruned';
  await expect(requireUnprunedStep(store, 'demo', 4)).rejects.toThrow(refusal);
  await expect(requireWeights(store, 'demo', 4)).rejects.toThrow(refusal);
  await expect(requireWeights(store, 'demo', 5)).rejects.toThrow('demo@5 must have its weights');
  await requireUnprunedStep(store, 'demo', 8);
  await requireUnprunedStep(store, 'demo', 99);
});

test('killed at any write, it ends in the same files', async () => {
  const whole = await killedAt(Infinity);
  expect(whole.calls).toBeGreaterThan(40);
  for (let call = 1; call <= whole.calls; call += 9) {
    const { killed } = await killedAt(call);
    expect((await verifyRun(killed, 'demo')).findings.problems).toEqual([]);
    await pruneAfter(24, killed);
    expect(await allKeys(killed)).toEqual(await allKeys(whole.killed));
  }
});

/** A store whose pruning was ended at a write. */
async function killedAt(call: number): Promise<{ killed: FileStore; calls: number }> {
  const killed = new KilledStore(temporaryFolder());
  await makeRun(killed, { steps: STEPS, evals: EVALS });
  [killed.calls, killed.killedAt] = [0, call];
  await pruneAfter(24, killed).catch(() => undefined);
  killed.killedAt = Infinity;
  return { killed, calls: killed.calls };
}

class KilledStore extends FileStore {
  calls = 0;
  killedAt = Infinity;

  override publish(key: string, bytes: Uint8Array) {
    return this.#counted(() => super.publish(key, bytes));
  }

  override replace(key: string, bytes: Uint8Array) {
    return this.#counted(() => super.replace(key, bytes));
  }

  override removeFolder(prefix: string) {
    return this.#counted(() => super.removeFolder(prefix));
  }

  override removeBlob(ref: BlobRef) {
    return this.#counted(() => super.removeBlob(ref));
  }

  #counted<T>(write: () => Promise<T>): Promise<T> {
    this.calls += 1;
    return this.calls === this.killedAt ? Promise.reject(new Error('killed')) : write();
  }
}

test('a process that stood still removes nothing more', async () => {
  let checks = 0;
  const check = () => {
    checks += 1;
    if (checks > 15) throw new Error('stale');
  };
  const remove = vi.spyOn(store, 'removeBlob');
  await expect(pruneAfter(24, store, check)).rejects.toThrow('stale');
  expect(remove).toHaveBeenCalledTimes(15 - 13);
});

test('a copy keeps what was pruned apart, and brings back what another copy has', async () => {
  const [early, late] = [temporaryStore(), temporaryStore()];
  const options = {
    isThorough: true,
    withPruned: false,
    signal: new AbortController().signal,
    onStep: () => undefined,
  };
  await copyRun(store, early, 'demo', options);
  await pruneAfter(24);
  await copyRun(store, late, 'demo', options);
  expect(await states(late)).toEqual(AFTER_24);
  await copyRun(early, late, 'demo', options);
  expect(await states(late)).toEqual(AFTER_24);
  await copyRun(early, late, 'demo', { ...options, withPruned: true });
  expect(await states(late)).toEqual({ kept: range(0, STEPS) });
});

test('a branch has its own newest checkpoints, and pruning by command removes what retention left', async () => {
  await store.publish(
    branchKey('demo', 1),
    encodeJson({ schema: 1, branch: 1, fromBranch: 0, fromStep: 20, requestId: 'r' }),
  );
  await pruneAfter(24);
  expect(await states()).toEqual({ kept: range(0, STEPS) });
  const { pruned } = await prune(store, 'demo', { keepLast: 1, keepBest: [], keepEvery: null });
  expect(pruned).toEqual([]);
});

test('another run with the same bytes keeps them', async () => {
  await makeRun(store, { run: 'twin', steps: STEPS, evals: EVALS });
  await pruneAfter(24);
  const twins = await listCheckpoints(store, 'twin');
  expect(new Set(twins.map(({ weights }) => weights))).toEqual(new Set(['kept']));
});

test('of runs in progress, one that makes the same checkpoints stops a pruning, and one that made others does not', async () => {
  const passes = { passes: 2 };
  await makeRun(store, { run: 'other', steps: 3, train: passes });
  const first = async (run: string) => (await listCheckpoints(store, run))[0]!.commit.manifest.adapter.sha256;
  expect(await first('other')).toBe(await first('demo'));
  const setRunning = async (run: string) => {
    const state = { ...(await readState(store, run))!, state: 'running' as const };
    await store.replace(stateKey(run), encodeJson(state));
  };
  await setRunning('other');
  await makeRun(store, { run: 'twin', steps: 3 });
  await setRunning('twin');
  expect((await pruneAfter(24))!.pruned.map(({ step }) => step)).toEqual([1, 2, 3]);
  await store.replace(stateKey('twin'), encodeJson({ ...(await readState(store, 'twin'))!, state: 'stopped' }));
  await pruneAfter(24);
  expect(await states()).toEqual(AFTER_24);
});

async function allKeys(from: FileStore): Promise<string[]> {
  const keys: string[] = [];
  const walk = async (prefix: string): Promise<void> => {
    for await (const key of from.list(prefix))
      if (key.endsWith('/')) await walk(key.slice(0, -1));
      else keys.push(key);
  };
  for (const prefix of ['blobs', 'runs']) await walk(prefix);
  return keys.toSorted();
}
