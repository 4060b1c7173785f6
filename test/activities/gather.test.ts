/** Recorded conversations become groups: chosen once, trained once, read again from the run's own data set. */
import { beforeEach, expect, test } from 'vitest';

import type { Checkpoint, GatherInput } from '../../core/contract/contract.ts';
import { sha256Hex } from '../../core/text/hashes.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { manifestKey, rolloutsKey } from '../../store/layout.ts';
import { readAncestors } from '../../store/records/production/ancestors.ts';
import { readRatedConversations } from '../../store/records/production/feedback.ts';
import { readRollouts } from '../../store/records/groups/group-files.ts';
import { readCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { takeRecorded } from '../../store/records/production/dataset.ts';
import { madeManifest } from '../store/records/made-manifest.ts';
import { rate, record, recordedCall } from '../store/records/recorded.ts';
import { call, openWorld, type World } from './world.ts';

let world: World;
let served: Checkpoint;
beforeEach(async () => {
  world = await openWorld();
  served = await commit(0, null);
  for (const step of [1, 2, 3]) served = await commit(step, served);
});

const adapterOf = (step: number): string => sha256Hex(`demo ${step}`);

async function commit(step: number, parent: Checkpoint | null): Promise<Checkpoint> {
  const place = { branch: 0, step };
  const of = parent && { step: parent.step, manifestSha256: parent.manifestSha256 };
  const manifest = madeManifest(place, { adapterSha256: adapterOf(step), parent: of });
  await world.store.publish(manifestKey({ run: 'demo', ...place }), encodeJson(manifest));
  return (await readCheckpoint(world.store, { run: 'demo', ...place }))!;
}

async function take(run: string, maxAge = 1) {
  return takeRecorded(world.store, 'demo', { run, ancestors: await readAncestors(world.store, served, maxAge) });
}

const turn = (step: number, changes = {}) => ({ call: recordedCall(adapterOf(step)), ...changes });

test('feedback on a conversation trains all its answers, feedback on answers trains these alone', async () => {
  const { store } = world;
  const whole = await record(store, 'demo', [turn(3), turn(3)]);
  const parts = await record(store, 'demo', [turn(2), turn(2), turn(2)]);
  await record(store, 'demo', [turn(3)]);
  await rate(store, 'demo', whole.conversation, 0.25);
  await rate(store, 'demo', whole.conversation, 1);
  await rate(store, 'demo', parts.conversation, -1, parts.answers[0]);
  await rate(store, 'demo', parts.conversation, 0.5, parts.answers[2]);
  const production = (await take('nightly-1'))!;
  expect(production).toMatchObject({ run: 'demo', conversations: 3, leftOut: {} });
  expect(production.samplers.map(({ step, age }) => [step, age])).toEqual([
    [3, 0],
    [2, 1],
  ]);
  const place = { run: 'nightly-1', branch: 0, step: 1 };
  const rules = {
    minimumGroupSize: 1,
    truncated: 'mask',
    overlongBuffer: 0,
    overlongPenalty: 1,
    baseline: 'rae',
  } as const;
  const input: GatherInput = { ...place, recordings: production.recordings, conversations: [2, 0, 1], ...rules };
  const gathered = await call(world.activities.gather, input);
  expect(gathered.groups.map(({ scenario, rewards, calls, use }) => [scenario, rewards, calls, use])).toEqual([
    [2, [0.5], 1, 'trained'],
    [0, [1], 2, 'trained'],
    [1, [-1], 1, 'trained'],
  ]);
  const { rollouts } = (await readRollouts(store, rolloutsKey({ ...place, group: 1 })))!;
  expect(rollouts.header).toMatchObject({ adapterSha256: adapterOf(3), scenarioId: whole.conversation, scenario: 0 });
  expect(rollouts.attempts[0]!.calls).toEqual([recordedCall(adapterOf(3)), recordedCall(adapterOf(3))]);
  // A retry finds the same, and another input is refused.
  expect(await call(world.activities.gather, input)).toEqual(gathered);
  await expect(call(world.activities.gather, { ...input, conversations: [0, 2, 1] })).rejects.toMatchObject({
    type: 'StepConflict',
  });
});

test('what cannot be trained is counted by its reason', async () => {
  const { store } = world;
  const turns = [[turn(3)], [turn(1)], [turn(3), turn(2)], [turn(3, { untrainable: 'redacted' })]];
  for (const each of turns) await rate(store, 'demo', (await record(store, 'demo', each)).conversation, 1);
  expect(await take('nightly-1')).toMatchObject({
    conversations: 1,
    leftOut: { 'other-policy': 1, 'several-policies': 1, redacted: 1 },
  });
});

test('a conversation is trained by one run, which finds the same ones again', async () => {
  const { store } = world;
  const { conversation } = await record(store, 'demo', [turn(3)]);
  await rate(store, 'demo', conversation, 1);
  const first = await take('nightly-1');
  expect(await rate(store, 'demo', conversation, -1)).toMatchObject({ outcome: 'trained' });
  expect(await take('nightly-2')).toBeNull();
  expect(await take('nightly-1')).toEqual(first);
  expect(await readRatedConversations(store, 'demo')).toMatchObject([{ trainedBy: 'nightly-1' }]);
});
