import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';

import { Located, type EvalResult, type SettingChange } from '../../core/contract/contract.ts';
import { EMPTY_LEDGER } from '../../core/rules/costs.ts';
import { sha256Hex } from '../../core/text/hashes.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { branchKey, manifestKey, stateKey } from '../../store/layout.ts';
import { readBranches } from '../../store/records/runs/lineage.ts';
import { publishPosition } from '../../store/records/runs/positions.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { call, openWorld, rolloutInput, type World } from './world.ts';
import { fixtureState } from '../cli/fixture-store.ts';
import { madeManifest } from '../store/records/made-manifest.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});

/** A step's commit as far as it is read here, with real weights behind it. */
async function commit(step: number, branch = 0): Promise<string> {
  const { store } = world;
  const [adapter, adapterConfig, optimizer] = await Promise.all(
    ['adapter', 'config', 'optimizer'].map((kind) => store.putBlob(encodeJson([kind, branch, step]))),
  );
  const bytes = encodeJson(
    madeManifest({ branch, step }, { adapter: adapter!, adapterConfig: adapterConfig!, optimizer: optimizer! }),
  );
  await store.publish(manifestKey({ run: 'demo', branch, step }), bytes);
  return hashBytes(bytes);
}

/** A finished step: its commit, unless it was skipped, and its position. */
async function finish(
  step: number,
  dealt: number,
  { branch = 0, skipped = 0, at = null as [number, number] | null } = {},
): Promise<void> {
  const [ofBranch, ofStep] = at ?? [branch, step];
  const manifestSha256 = await commit(ofStep, ofBranch);
  const checkpoint = { run: 'demo', branch: ofBranch, step: ofStep, manifestSha256, adapterSha256: HASH };
  const place = { branch, step, checkpoint, policies: [checkpoint], dealt, open: [], emptySteps: skipped };
  await publishPosition(world.store, 'demo', { ...place, costs: EMPTY_LEDGER });
}

const HASH = sha256Hex('any');

/** Steps 0 to 4, of which step 3 was empty and step 2 replaced a group. */
async function writeRun(): Promise<void> {
  await commit(0);
  await finish(1, 2);
  await finish(2, 5);
  await finish(3, 9, { skipped: 1, at: [0, 2] });
  await finish(4, 11);
}

const locate = (rollback: { requestId: string; step: number } | null) =>
  call(world.activities.locate, { run: 'demo', rollback: rollback && { ...rollback, costs: EMPTY_LEDGER } });

const evalAfter = (step: number): EvalResult => {
  return { step, attempts: 10, failed: 0, reward: 1, metrics: {}, rolloutsSha256: HASH };
};

const change = (to: number, branch: number, step: number): SettingChange => ({
  setting: 'learningRate',
  from: 1,
  to,
  branch,
  step,
  reason: null,
});

test('a run goes back to the position after a step: an empty step keeps the older checkpoint', async () => {
  await writeRun();
  const state = { ...fixtureState('demo', 4), evals: [0, 2, 4].map(evalAfter) };
  await world.store.replace(stateKey('demo'), encodeJson(state));
  const located = await locate({ requestId: 'a', step: 3 });
  expect(Located.parse(located)).toEqual(located);
  expect(located).toMatchObject({
    branch: 1,
    lineage: [{ branch: 1, fromBranch: 0, fromStep: 3 }],
    step: 3,
    checkpoint: { run: 'demo', branch: 0, step: 2, manifestSha256: await commit(2) },
    dealt: 9,
    emptySteps: 0,
    evals: [{ step: 0 }, { step: 2 }],
    changes: [],
    amendments: 0,
  });
});

test('the same request gets the same branch, another one the next', async () => {
  await writeRun();
  const first = await locate({ requestId: 'a', step: 2 });
  expect(await locate({ requestId: 'a', step: 2 })).toEqual(first);
  expect(first.branch).toBe(1);
  expect((await locate({ requestId: 'b', step: 2 })).branch).toBe(2);
  const both = await Promise.all([locate({ requestId: 'c', step: 1 }), locate({ requestId: 'd', step: 1 })]);
  expect(both.map(({ branch }) => branch).toSorted((a, b) => a - b)).toEqual([3, 4]);
  expect((await readBranches(world.store, 'demo')).map(({ branch }) => branch)).toEqual([1, 2, 3, 4]);
});

test('a branch of a branch stands on the steps of both; one that goes back before it, on the older alone', async () => {
  await writeRun();
  await locate({ requestId: 'a', step: 2 });
  await finish(3, 10, { branch: 1 });
  const deeper = await locate({ requestId: 'b', step: 3 });
  expect(deeper).toMatchObject({ branch: 2, dealt: 10, checkpoint: { branch: 1, step: 3 } });
  expect(deeper.lineage.map(({ fromBranch, fromStep }) => [fromBranch, fromStep])).toEqual([
    [0, 2],
    [1, 3],
  ]);
  const back = await locate({ requestId: 'c', step: 1 });
  expect(back).toMatchObject({ branch: 3, lineage: [{ branch: 3, fromBranch: 0, fromStep: 1 }], dealt: 2 });
});

test('a run that is started again goes on where its newest branch stands, begun steps left out', async () => {
  await writeRun();
  await commit(5);
  expect(await locate(null)).toMatchObject({ branch: 0, step: 4 });
  await locate({ requestId: 'a', step: 2 });
  expect(await locate(null)).toMatchObject({ branch: 1, step: 2, emptySteps: 0 });
  await finish(3, 7, { branch: 1, skipped: 1, at: [0, 2] });
  await finish(4, 9, { branch: 1 });
  expect(await locate(null)).toMatchObject({ step: 4, dealt: 9, emptySteps: 0, checkpoint: { branch: 1, step: 4 } });
  // A copy that was cut off before the step's commit.
  rmSync(join(world.root, manifestKey({ run: 'demo', branch: 1, step: 4 })));
  expect(await locate(null)).toMatchObject({ step: 3, dealt: 7, emptySteps: 1, checkpoint: { branch: 0, step: 2 } });
});

test('changed settings are kept in order, once', async () => {
  await writeRun();
  const { amend } = world.activities;
  for (const number of [1, 2, 2]) await call(amend, { run: 'demo', number, changes: [change(number + 1, 0, 5)] });
  expect(await locate(null)).toMatchObject({ step: 4, amendments: 2, changes: [change(2, 0, 5), change(3, 0, 5)] });
  const other = call(amend, { run: 'demo', number: 2, changes: [change(9, 0, 5)] });
  await expect(other).rejects.toMatchObject({ type: 'StepConflict' });
});

test('nobody goes back to weights that are broken', async () => {
  await writeRun();
  const { key } = await world.store.putBlob(encodeJson(['optimizer', 0, 2]));
  await world.store.replace(key, encodeJson('something else'));
  await expect(locate({ requestId: 'a', step: 2 })).rejects.toMatchObject({ type: 'StoreCorrupt' });
  expect(await world.store.read(branchKey('demo', 1))).toBeNull();
  expect((await locate({ requestId: 'b', step: 1 })).branch).toBe(1);
});

test("a group's sampling differs from branch to branch", async () => {
  const first = await rolloutInput(world.store);
  const second = { ...first, branch: 1 };
  const played = [await call(world.activities.rollout, first), await call(world.activities.rollout, second)];
  expect(new Set(played.map(({ rolloutsSha256 }) => rolloutsSha256)).size).toBe(2);
});
