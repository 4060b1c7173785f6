/** Firings on recorded conversations: too few, chosen once, trained once; the promotion after them. */
import { beforeEach, expect, test, vi } from 'vitest';

import type { AllocateInput, Allocated, Checkpoint, PromoteInput, RunState } from '../../core/contract/contract.ts';
import { findConfigProblem } from '../../core/rules/config-rules.ts';
import { sha256Hex } from '../../core/text/hashes.ts';
import { planProductionFiring } from '../../core/plan/firing.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { newRunState } from '../../core/plan/run-summary.ts';
import { findSettingsProblem } from '../../core/rules/settings.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { evalKey, evalRolloutsKey, manifestKey } from '../../store/layout.ts';
import { readCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { readWaiting } from '../../store/records/production/firings.ts';
import { findPromoted, readPromotions, recordPromotion } from '../../store/records/runs/promotions.ts';
import { publishRun } from '../../store/records/runs/publish-run.ts';
import { encodeRollouts } from '../../store/records/groups/trajectories.ts';
import { attemptOf, rolloutsOf } from '../store/records/made-attempt.ts';
import { madeManifest } from '../store/records/made-manifest.ts';
import { rate, record, recordedCall } from '../store/records/recorded.ts';
import { call, openWorld, type World } from './world.ts';

let world: World;
let served: Checkpoint;
beforeEach(async () => {
  world = await openWorld();
  served = await commit('demo', 1);
});

const TEMPLATE = { run: 'nightly', agent: 'guess', baseModel: 'pocket', groupsPerStep: 2 };
const CONFIG = defaultRunConfig({ ...TEMPLATE, train: { baseline: 'rae' } });
const SOURCE = { run: 'demo', atLeast: 3, maxPolicyAge: 4, epochs: 2 };

async function commit(run: string, step: number): Promise<Checkpoint> {
  const place = { run, branch: 0, step };
  const manifest = madeManifest(place, { adapterSha256: sha256Hex(`${run} ${step}`) });
  await world.store.publish(manifestKey(place), encodeJson(manifest));
  return (await readCheckpoint(world.store, place))!;
}

function allocate(firing: string, from: Checkpoint | null = null): Promise<Allocated> {
  const input: AllocateInput = { schedule: 'nightly', firing, config: CONFIG, from, production: SOURCE };
  return call(world.activities.allocate, input);
}

async function rateNew(count: number, adapterSha256 = served.adapterSha256): Promise<void> {
  for (let index = 0; index < count; index++) {
    const { conversation } = await record(world.store, 'demo', [{ call: recordedCall(adapterSha256) }]);
    await rate(world.store, 'demo', conversation, index);
  }
}

test('a firing with too few new conversations trains nothing, takes no number, and says so', async () => {
  await rateNew(2);
  const reason = 'demo has 2 new conversations with feedback that can be trained, at least 3 are asked for';
  expect(await allocate('a', served)).toMatchObject({ number: 1, concluded: null, tooFew: reason });
  expect(await readWaiting(world.store, 'nightly')).toMatchObject({ reason });
  await rateNew(1);
  expect(await allocate('b', served)).not.toHaveProperty('tooFew');
});

test('a firing trains what has feedback by then, from the checkpoint that serves, each conversation once', async () => {
  await rateNew(3);
  const first = await allocate('a', served);
  expect(first.config).toMatchObject({
    run: 'nightly-1',
    parent: served,
    // Three conversations, two of them in a step, twice.
    steps: 4,
    production: { conversations: 3, samplers: [{ adapterSha256: served.adapterSha256, age: 0 }] },
  });
  await rateNew(3);
  expect(await allocate('a', served)).toEqual(first);
  const second = await allocate('b', served);
  expect(second.config).toMatchObject({ run: 'nightly-2', production: { conversations: 3 } });
  expect(second.config.production?.recordings).not.toEqual(first.config.production?.recordings);
  expect(await allocate('c', served)).toHaveProperty('tooFew');
});

test('a conversation that goes on with another policy while it is chosen is left out', async () => {
  await rateNew(3);
  const publish = world.store.publish.bind(world.store);
  const { conversation } = await record(world.store, 'demo', [{ call: recordedCall(served.adapterSha256) }]);
  await rate(world.store, 'demo', conversation, 1);
  vi.spyOn(world.store, 'publish').mockImplementation(async (key, bytes) => {
    if (key.includes(`/feedback/${conversation}`))
      await record(world.store, 'demo', [{ conversation, call: recordedCall('b'.repeat(64)) }]);
    return publish(key, bytes);
  });
  const { config } = await allocate('a', served);
  expect(config.production).toMatchObject({ conversations: 3, leftOut: { 'several-policies': 1 } });
});

test('a firing of few steps has fewer warm-up steps and restarts, says so, and takes changes', async () => {
  await rateNew(3);
  const config = { ...CONFIG, warmupSteps: 10, learningRateSchedule: 'cosine', learningRateRestarts: 3 } as const;
  const input: AllocateInput = { schedule: 'nightly', firing: 'a', config, from: served, production: SOURCE };
  const fired = (await call(world.activities.allocate, input)).config;
  expect(fired).toMatchObject({ steps: 4, warmupSteps: 3, learningRateRestarts: 0 });
  expect(world.warnings).toEqual([expect.stringContaining('fewer warm-up steps or restarts')]);
  expect(findSettingsProblem(fired, 0, { learningRate: 1e-5 })).toBeNull();
  for (const [warmupSteps, learningRateRestarts] of [
    [1, 1],
    [0, 2],
    [0, 1],
  ] as const)
    for (const conversations of [1, 2, 9]) {
      const production = { ...fired.production!, conversations };
      const planned = planProductionFiring(
        { ...config, parent: served, warmupSteps, learningRateRestarts },
        production,
        1,
      );
      expect([conversations, findConfigProblem(planned)]).toEqual([conversations, null]);
    }
});

test('a firing starts from the promoted checkpoint, not from what an earlier firing ended with', async () => {
  const promoted = await commit('other', 5);
  const row = { by: null, reason: null, evaluation: null, comparison: null, key: null };
  await recordPromotion(world.store, 'demo', { kind: 'promoted', checkpoint: promoted, ...row });
  await rateNew(3, promoted.adapterSha256);
  expect((await allocate('a', served)).config.parent).toEqual(promoted);
});

/** A run that ended at step 2 with these rewards before and after. */
async function ended(run: string, parent: Checkpoint, before: number[], after: number[]): Promise<PromoteInput> {
  const config = { ...CONFIG, run, parent };
  await publishRun(world.store, { config, agentCodeSha256: sha256Hex('code') });
  for (const [step, rewards] of [
    [0, before],
    [2, after],
  ] as const) {
    const attempts = rewards.map((reward, attempt) => attemptOf(attempt, [], { reward }));
    const bytes = await encodeRollouts(rolloutsOf(attempts, { step }));
    await world.store.publish(evalRolloutsKey({ run, branch: 0, step }), bytes);
  }
  const state: RunState = { ...newRunState(config), step: 2 };
  return { schedule: 'nightly', number: 1, served: 'demo', state, checkpoint: await commit(run, 2) };
}

const HALF = Array.from({ length: 20 }, (_, index) => index % 2);
const promote = (input: PromoteInput) => call(world.activities.promote, input);

test('a checkpoint that is not significantly worse is promoted once, however often it is asked for', async () => {
  const input = await ended('nightly-1', served, HALF, [...HALF.slice(2), 0, 0]);
  expect(await promote(input)).toEqual({ reason: null });
  expect(await promote(input)).toEqual({ reason: null });
  expect(await readPromotions(world.store, 'demo')).toMatchObject([
    {
      kind: 'promoted',
      checkpoint: input.checkpoint,
      by: 'schedule nightly',
      evaluation: { reward: 0.45, scenarios: 20 },
      comparison: { before: 0.5, scenarios: 20 },
    },
  ]);
});

test('a firing that ended between its conclusion and its promotion goes on when it is fired again', async () => {
  await rateNew(3);
  const { number, config } = await allocate('a', served);
  const input = await ended(config.run, served, HALF, HALF);
  const state = { ...input.state, adapterSha256: sha256Hex(`${config.run} 2`) };
  await call(world.activities.conclude, { schedule: 'nightly', number, state });
  expect(await allocate('a', served)).toMatchObject({ number, config, concluded: null });
  await promote({ ...input, number });
  expect(await allocate('a', served)).toMatchObject({ number, concluded: input.checkpoint });
});

test('a worse checkpoint is refused: the trail has the numbers, and production stays', async () => {
  const { reason } = await promote(
    await ended(
      'nightly-1',
      served,
      HALF,
      HALF.map(() => -1),
    ),
  );
  expect(reason).toMatch(/^its reward on 20 held-out scenarios is significantly lower, by 1\.500 /);
  expect(await readPromotions(world.store, 'demo')).toMatchObject([
    { kind: 'refused', reason, comparison: { before: 0.5, after: -1, difference: -1.5, scenarios: 20 } },
  ]);
  expect(await findPromoted(world.store, 'demo')).toBeNull();
});

test.each(['stopped', 'completed'] as const)(
  'a run that was %s before its last evaluation is refused, and fails nothing; an evaluation without its file does',
  async (state) => {
    const input = await ended('nightly-1', served, HALF, HALF);
    const later = await commit('nightly-1', 3);
    const early = { ...input, state: { ...input.state, state, step: 3 }, checkpoint: later };
    const reason = 'it was not evaluated: its run ended before the evaluation after the last step';
    expect(await promote(early)).toEqual({ reason });
    const row = { kind: 'refused', checkpoint: later, reason, evaluation: null, comparison: null };
    expect(await readPromotions(world.store, 'demo')).toMatchObject([row]);
    const evaluated = { step: 3, attempts: 20, failed: 0, reward: 0.5, metrics: {}, rolloutsSha256: 'a'.repeat(64) };
    await world.store.publish(evalKey({ run: 'nightly-1', branch: 0, step: 3 }), encodeJson(evaluated));
    await expect(promote({ ...early, number: 2 })).rejects.toThrow('eval.rollouts.jsonl.gz');
  },
);

test('a checkpoint is not promoted over one that was promoted while it was trained', async () => {
  const input = await ended('nightly-1', served, HALF, HALF);
  const row = { by: 'me', reason: null, evaluation: null, comparison: null, key: null };
  await recordPromotion(world.store, 'demo', { kind: 'promoted', checkpoint: await commit('demo', 9), ...row });
  expect((await promote(input)).reason).toMatch(/^demo@9 was promoted while it was trained/);
});
