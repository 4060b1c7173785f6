import { beforeEach, expect, test } from 'vitest';

import { Allocated, type AllocateInput, type Checkpoint, type RunConfig } from '../../core/contract/contract.ts';
import { sha256Hex } from '../../core/text/hashes.ts';
import { newRunState } from '../../core/plan/run-summary.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { manifestKey, runKey } from '../../store/layout.ts';
import { readFirings } from '../../store/records/production/schedules.ts';
import { call, checkpoint, openWorld, type World } from './world.ts';
import { madeManifest } from '../store/records/made-manifest.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});

const CONFIG = defaultRunConfig({ run: 'nightly', agent: 'guess', baseModel: 'pocket' });

function allocate(firing: string, from: Checkpoint | null = null): Promise<Allocated> {
  const input: AllocateInput = { schedule: 'nightly', firing, config: CONFIG, from };
  return call(world.activities.allocate, input);
}

/** A run that ended on the commit of a step. */
async function conclude(number: number, step: number): Promise<Checkpoint> {
  const run = `nightly-${number}`;
  const adapterSha256 = sha256Hex(`${run} ${step}`);
  const manifest = madeManifest({ branch: 0, step }, { adapterSha256 });
  await world.store.publish(manifestKey({ run, branch: 0, step }), encodeJson(manifest));
  const state = { ...newRunState({ ...CONFIG, run }), step, adapterSha256 };
  return call(world.activities.conclude, { schedule: 'nightly', number, state });
}

test('firings are numbered in the order in which they ask', async () => {
  const allocated = [await allocate('a'), await allocate('b'), await allocate('c')];
  expect(allocated.map(({ config }) => config.run)).toEqual(['nightly-1', 'nightly-2', 'nightly-3']);
  for (const each of allocated) expect(Allocated.parse(each)).toEqual(each);
});

test('who asks again gets the same run with the same parent, whatever happened in between', async () => {
  await allocate('a');
  const second = await allocate('b');
  const ended = await conclude(1, 4);
  await allocate('c');
  expect(await allocate('b')).toEqual(second);
  expect((await allocate('a')).concluded).toEqual(ended);
  expect(second).toMatchObject({ concluded: null, config: { parent: null } });
});

test('a firing begins with what the last one that ended well ended with', async () => {
  await allocate('a');
  const ended = await conclude(1, 4);
  expect(ended).toMatchObject({ run: 'nightly-1', step: 4 });
  expect((await allocate('b')).config.parent).toEqual(ended);
  // The second has not ended well.
  expect((await allocate('c')).config.parent).toEqual(ended);
});

test('the first firing begins with what it was given, and later ones with what they made of it', async () => {
  const from = checkpoint(7, 'other');
  expect((await allocate('a', from)).config.parent).toEqual(from);
  expect((await allocate('b', from)).config.parent).toEqual(from);
  const ended = await conclude(2, 3);
  expect((await allocate('c', from)).config.parent).toEqual(ended);
});

test('a name that somebody has given to a run is passed over', async () => {
  await world.store.publish(runKey('nightly-1'), encodeJson({ schema: 1 }));
  expect((await allocate('a')).config.run).toBe('nightly-2');
  expect((await allocate('a')).number).toBe(2);
});

test('firings that ask at once get a run each', async () => {
  const all = await Promise.all(['a', 'b', 'c', 'd'].map((firing) => allocate(firing)));
  expect(new Set(all.map(({ number }) => number))).toEqual(new Set([1, 2, 3, 4]));
  const recorded = await readFirings(world.store, 'nightly');
  expect(recorded.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
});

test('a run whose last adapter is not in the store cannot be concluded', async () => {
  await allocate('a');
  const state = { ...newRunState({ ...CONFIG, run: 'nightly-1' }), step: 4, adapterSha256: sha256Hex('lost') };
  await expect(call(world.activities.conclude, { schedule: 'nightly', number: 1, state })).rejects.toMatchObject({
    type: 'StoreCorrupt',
    nonRetryable: true,
    message: expect.stringContaining(sha256Hex('lost')) as string,
  });
});

test('a schedule whose configuration is not of this version is told so, with what to do', async () => {
  const input = { schedule: 'nightly', firing: 'a', from: null };
  const { steps: _, ...broken } = CONFIG;
  await expect(call(world.activities.allocate, { ...input, config: broken as RunConfig })).rejects.toMatchObject({
    type: 'BadConfig',
    message: expect.stringMatching(/but its steps is invalid .*; delete the schedule and create it again$/) as string,
  });
});
