/** Where a run stands, as its store tells it: read from few objects, whenever the run was killed. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';

import type { CostLedger, Prepared, RunConfig, RunState } from '../../../../core/contract/contract.ts';
import { EMPTY_LEDGER } from '../../../../core/rules/costs.ts';
import { restorePosition, storePosition } from '../../../../core/plan/step.ts';
import { FileStore } from '../../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../../store/bytes/json.ts';
import { positionKey, stateKey } from '../../../../store/layout.ts';
import { findPosition, publishPosition, rollBack } from '../../../../store/records/runs/positions.ts';
import { readPrepared, readState } from '../../../../store/records/runs/run-reader.ts';
import { verifyRun } from '../../../../store/records/verify/verify-run.ts';
import { temporaryFolder } from '../../../temporary-folder.ts';
import { makeRun, takeStep, type MadeOptions } from '../made-run.ts';

const place = (step: number, branch = 0) => ({ run: 'demo', branch, step });
const LEDGER: CostLedger = {
  spent: { ...EMPTY_LEDGER.spent, seconds: 60, usd: { gpu: 2, judge: 5 } },
  judging: { calls: 4, cached: 0, promptTokens: 900, completionTokens: 100, usd: 5 },
  lastStep: { seconds: 20, usd: { judge: 1 } },
  sinceStep: { seconds: 0, usd: {} },
};

/** Counts what is read and written; a write ends the process that makes it. */
class WatchedStore extends FileStore {
  reads: string[] = [];
  writes = 0;
  killedAt = Infinity;

  override read(key: string) {
    this.reads.push(key);
    return super.read(key);
  }

  override publish(key: string, bytes: Uint8Array) {
    return this.#written(() => super.publish(key, bytes));
  }

  override replace(key: string, bytes: Uint8Array) {
    return this.#written(() => super.replace(key, bytes));
  }

  #written<T>(write: () => Promise<T>): Promise<T> {
    this.writes += 1;
    return this.writes >= this.killedAt ? Promise.reject(new Error('killed')) : write();
  }
}

let store: WatchedStore;
let root: string;
beforeEach(() => {
  root = temporaryFolder();
  store = new WatchedStore(root);
});

const problems = async () => (await verifyRun(store, 'demo')).findings.problems;

describe('a run that continues', () => {
  test.each([3, 40])('reads at most five objects, after %i steps, too', async (steps) => {
    const { positions } = await makeRun(store, { steps, maxStaleness: 1 });
    store.reads = [];
    const located = await findPosition(store, 'demo');
    expect(restorePosition(positions[0]!.prepared, located)).toEqual(positions.at(-1));
    expect(store.reads.length).toBeLessThanOrEqual(5);
  });

  test('stands before its first step with nothing but its first commit', async () => {
    const { positions } = await makeRun(store, { steps: 1 });
    rmSync(join(root, positionKey(place(1))));
    expect(restorePosition(positions[0]!.prepared, await findPosition(store, 'demo'))).toEqual(positions[0]);
  });

  test('has spent what it had spent, and worked as long as its state shows', async () => {
    const { positions } = await makeRun(store, { steps: 1 });
    await publishPosition(store, 'demo', { ...storePosition(positions[1]!, LEDGER), step: 2 });
    expect((await findPosition(store, 'demo')).costs).toEqual(LEDGER);
    const state = (await readState(store, 'demo'))!;
    const costs: RunState['costs'] = { ...LEDGER.spent, seconds: 90, usd: { gpu: 3, judge: 9 } };
    await store.replace(stateKey('demo'), encodeJson({ ...state, costs }));
    const { spent } = (await findPosition(store, 'demo')).costs;
    // The judge of a step that was begun is counted again with the step.
    expect(spent).toMatchObject({ seconds: 90, usd: { gpu: 3, judge: 5 } });
    await store.replace(stateKey('demo'), Buffer.from('{'));
    expect((await findPosition(store, 'demo')).costs).toEqual(LEDGER);
  });
});

describe('a run that goes back', () => {
  test('refunds nothing, and begins a branch without the skipped steps of the old one', async () => {
    const { positions } = await makeRun(store, { steps: 3, empty: 2 });
    expect(positions[2]).toMatchObject({ step: 2, emptySteps: 1 });
    const located = await rollBack(store, 'demo', { requestId: 'a', step: 2, costs: LEDGER });
    expect(located).toMatchObject({
      branch: 1,
      step: 2,
      emptySteps: 0,
      dealt: positions[2]!.dealt,
      checkpoint: positions[2]!.parent,
      costs: LEDGER,
      lineage: [{ branch: 1, fromBranch: 0, fromStep: 2 }],
    });
    expect(await rollBack(store, 'demo', { requestId: 'a', step: 2, costs: EMPTY_LEDGER })).toEqual(located);
    // Killed before the first step of the branch.
    expect(await findPosition(store, 'demo')).toEqual(located);
  });

  test('is told which file is missing', async () => {
    await makeRun(store, { steps: 2 });
    rmSync(join(root, positionKey(place(1))));
    const back = rollBack(store, 'demo', { requestId: 'a', step: 1, costs: LEDGER });
    await expect(back).rejects.toThrow('steps/1/position.json is missing; restore it from a copy');
  });
});

describe('verification', () => {
  test.each([
    ['dealt', '"dealt":4', '"dealt":5'],
    ['its policy', '"step":2,"manifestSha256":"', '"step":2,"manifestSha256":"0'],
  ])('finds a position with another %s', async (_, one, other) => {
    await makeRun(store, { steps: 3 });
    expect(await problems()).toEqual([]);
    const key = positionKey(place(2));
    const text = readFileSync(join(root, key), 'utf8');
    expect(text).toContain(one);
    await store.replace(key, Buffer.from(text.replace(one, other).replace(/"0([0-9a-f]{63})[0-9a-f]"/, '"0$1"')));
    expect((await problems()).map(({ object }) => object)).toContain(key);
  });

  test('finds a lost position, unless its step was never finished', async () => {
    await makeRun(store, { steps: 3 });
    rmSync(join(root, positionKey(place(3))));
    expect(await problems()).toEqual([]);
    rmSync(join(root, positionKey(place(1))));
    expect(await problems()).toMatchObject([{ object: positionKey(place(1)), finding: 'it is missing' }]);
  });
});

describe('killed at any write', () => {
  const OPTIONS: MadeOptions = { steps: 3, still: 1, empty: 2 };

  /** Goes on from where the store says that the run stands; a step's position is written beside the next step. */
  async function resume(config: RunConfig, prepared: Prepared): Promise<void> {
    let position = restorePosition(prepared, await findPosition(store, 'demo'));
    while (position.step < config.steps) {
      const next = await takeStep(store, config, position, OPTIONS);
      if (position.step > 0) await publishPosition(store, 'demo', storePosition(position, EMPTY_LEDGER));
      position = next;
    }
    await publishPosition(store, 'demo', storePosition(position, EMPTY_LEDGER));
  }

  async function filesOf(): Promise<Record<string, string>> {
    const files: Record<string, string> = {};
    for await (const { key } of store.describe('runs/demo/branches'))
      files[key] = Buffer.from((await FileStore.prototype.read.call(store, key))!).toString('base64');
    return files;
  }

  test('it ends in the same bytes', async () => {
    const { config } = await makeRun(store, { ...OPTIONS, steps: 3 });
    const whole = await filesOf();
    const prepared = (await readPrepared(store, 'demo'))!;
    const begin = () => {
      for (const step of [1, 2, 3])
        rmSync(join(root, `runs/demo/branches/0/steps/${step}`), { recursive: true, force: true });
      [store.writes, store.killedAt] = [0, Infinity];
    };
    begin();
    await resume(config, prepared);
    expect(await filesOf()).toEqual(whole);
    const { writes } = store;
    expect(writes).toBeGreaterThan(15);
    for (let write = 1; write <= writes; write++) {
      begin();
      store.killedAt = write;
      await expect(resume(config, prepared)).rejects.toThrow('killed');
      store.killedAt = Infinity;
      await resume(config, prepared);
      expect(await filesOf()).toEqual(whole);
    }
    expect(await problems()).toEqual([]);
  });
});
