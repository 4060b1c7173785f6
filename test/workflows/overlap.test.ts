import { randomUUID } from 'node:crypto';

import { ApplicationFailure } from '@temporalio/activity';
import { describe, expect, test } from 'vitest';

import type { GroupResult, RolloutInput, TrainInput } from '../../core/contract/contract.ts';
import { pauseUpdate, resumeUpdate, rollbackUpdate, setUpdate, stopUpdate } from '../../workflows/messages.ts';
import type { trainRun } from '../../workflows/train-run.ts';
import { bed } from './bed.ts';
import type { ActivityName, FakeOptions, FakeRun } from './fake-activities.ts';
import { CACHES, createGate, eventually, type RunSetup, type StartedRun, untilPaused } from './harness.ts';

type Placed = Pick<RolloutInput, 'branch' | 'step'>;
const isAt = (input: unknown, step: number): boolean =>
  (input as Placed).branch === 0 && (input as Placed).step === step;

/** Training of a step ends only after the next step was played: a run whose steps do not overlap would stand still. */
function trainAfterNextIsPlayed(steps: readonly number[]): FakeOptions & { order: string[] } {
  const order: string[] = [];
  const played = new Map(steps.map((step) => [step + 1, createGate()]));
  return {
    order,
    async before(name, input) {
      const { step } = input as Placed;
      if (name === 'rollout' || name === 'train') order.push(`${name} ${step} begins`);
      if (name === 'train' && steps.includes(step)) await played.get(step + 1)?.opened;
    },
    after(name, input) {
      const { step } = input as Placed;
      if (name === 'train') order.push(`train ${step} ends`);
      if (name === 'judge') played.get(step)?.open();
    },
  };
}

/** Holds what an activity does for a step of branch 0 until the gate opens. */
function hold(activity: ActivityName, step: number) {
  const [reached, released] = [createGate(), createGate()];
  const before = async (name: ActivityName, input: unknown): Promise<void> => {
    if (name !== activity || !isAt(input, step)) return;
    reached.open();
    await released.opened;
  };
  return { reached: reached.opened, release: released.open, before };
}

const policies = (fake: FakeRun): Record<number, number> =>
  Object.fromEntries(fake.rollouts.map(({ step, policy }) => [step, policy.step]));

const trained = ({ trainings }: FakeRun) =>
  trainings.map(({ branch, step, parent, samplers }: TrainInput) => [
    branch,
    step,
    parent.step,
    samplers?.[0]?.step ?? null,
  ]);

function plans(fake: FakeRun): unknown {
  return {
    rollouts: fake.rollouts.map(({ step, group, inputsSha256 }) => `${step}/${group}/${inputsSha256}`).toSorted(),
    trainings: fake.trainings.map(({ step, inputsSha256 }) => [step, inputsSha256]),
    evaluations: fake.evaluations.map(({ step, inputsSha256 }) => [step, inputsSha256]),
    curve: fake.summaries.map(({ step, adapterSha256, reward }) => [step, adapterSha256, reward]),
  };
}

/** A replaced group, an empty step and evaluations on the way. */
const use = ({ step, group }: RolloutInput): GroupResult['use'] =>
  step === 3 || (step === 2 && group === 0) ? 'no-variance' : 'trained';

describe.each(CACHES)('steps that overlap, %s', (_, maxCachedWorkflows) => {
  const playWhole = async (setup: RunSetup): Promise<FakeRun> =>
    bed.play({ maxCachedWorkflows, ...setup }, async ({ handle, client, fake }) => {
      expect(await handle.result()).toMatchObject({ state: 'completed', step: setup.config?.steps });
      const first = await client.workflow.getHandle(handle.workflowId, handle.firstExecutionRunId).describe();
      expect(first.status.name).toBe(setup.config?.continueAsNewEvery ? 'CONTINUED_AS_NEW' : 'COMPLETED');
      return fake;
    });

  test('are played while earlier ones train, by the checkpoints that the plan names, and no further ahead', async () => {
    const fake = trainAfterNextIsPlayed([1, 2, 3]);
    const run = await playWhole({ fake, config: { steps: 4, maxStaleness: 1 } });
    expect(policies(run)).toEqual({ 1: 0, 2: 0, 3: 1, 4: 2 });
    expect(trained(run)).toEqual([
      [0, 1, 0, null],
      [0, 2, 1, 0],
      [0, 3, 2, 1],
      [0, 4, 3, 2],
    ]);
    for (const step of [1, 2]) {
      expect(fake.order.indexOf(`rollout ${step + 1} begins`)).toBeLessThan(fake.order.indexOf(`train ${step} ends`));
      expect(fake.order.indexOf(`rollout ${step + 2} begins`)).toBeGreaterThan(
        fake.order.indexOf(`train ${step} ends`),
      );
    }
    expect(run.states.some(({ overlap }) => overlap?.length === 2)).toBe(true);
  });

  test('give the same plans, results and curve however fast either side is, and across continue-as-new', async () => {
    const config = { steps: 6, evalEvery: 2, maxStaleness: 2 };
    const whole = await playWhole({ fake: { use }, config });
    expect(policies(whole)).toEqual({ 1: 0, 2: 0, 3: 0, 4: 1, 5: 2, 6: 2 });
    const slowTrainer = trainAfterNextIsPlayed([1, 3]);
    const killed = new Set<string>();
    const before = async (name: ActivityName, input: unknown) => {
      const isFirst = (name === 'train' || name === 'rollout') && isAt(input, 2) && !killed.has(name);
      killed.add(isFirst ? name : '');
      if (isFirst) throw ApplicationFailure.retryable('killed', 'EngineFailed');
      await slowTrainer.before?.(name, input);
    };
    expect(plans(await playWhole({ fake: { ...slowTrainer, use, before }, config }))).toEqual(plans(whole));
    expect([...killed]).toEqual(expect.arrayContaining(['train', 'rollout']));
    const continued = { ...config, continueAsNewEvery: 3 };
    expect(plans(await playWhole({ fake: { use }, config: continued }))).toEqual(plans(whole));
  });

  test('are finished before a pause, and go on as if nothing had been', async () => {
    const config = { steps: 4, maxStaleness: 1 };
    const whole = await playWhole({ config });
    const held = hold('train', 2);
    await bed.play({ maxCachedWorkflows, fake: held, config }, async ({ handle, fake }) => {
      await held.reached;
      await eventually(
        async () => Promise.resolve(fake.rollouts.filter(({ step }) => step === 3).length),
        (count) => count === 2,
      );
      const answer = await handle.executeUpdate(pauseUpdate, { args: [{ reason: null }] });
      expect(answer).toMatchObject({ first: true, afterStep: 3 });
      held.release();
      const resting = await untilPaused(handle);
      expect(resting).toMatchObject({ step: 3, overlap: [] });
      expect(policies(fake)).toEqual({ 1: 0, 2: 0, 3: 1 });
      await handle.executeUpdate(resumeUpdate);
      expect(await handle.result()).toMatchObject({ state: 'completed', step: 4 });
      expect(plans(fake)).toEqual(plans(whole));
    });
  });

  test('take what is set, and a stop, after those that were begun', async () => {
    const held = hold('train', 1);
    const config = { steps: 9, maxStaleness: 1 };
    await bed.play({ maxCachedWorkflows, fake: held, config }, async ({ handle, fake }) => {
      await held.reached;
      await eventually(
        async () => Promise.resolve(fake.rollouts.length),
        (count) => count === 4,
      );
      const { changes } = await handle.executeUpdate(setUpdate, {
        args: [{ settings: { groupSize: 3 }, reason: null }],
      });
      expect(changes).toMatchObject([{ setting: 'groupSize', step: 3 }]);
      held.release();
      await eventually(
        async () => Promise.resolve(fake.trainings.length),
        (count) => count === 3,
      );
      const { afterStep } = await handle.executeUpdate(stopUpdate, { args: [{ reason: null }] });
      expect(await handle.result()).toMatchObject({ state: 'stopped', step: afterStep });
      expect(new Set(fake.rollouts.map(({ step, attempts }) => `${step > 2} ${attempts}`))).toEqual(
        new Set(['false 4', 'true 3']),
      );
      expect(fake.trainings.map(({ step }) => step)).toEqual(
        Array.from({ length: afterStep }, (__, index) => index + 1),
      );
    });
  });

  test('are given up by a rollback, whose branch begins with one policy', async () => {
    const held = hold('train', 4);
    const config = { steps: 5, maxStaleness: 1 };
    await bed.play({ maxCachedWorkflows, fake: held, config }, async ({ handle, fake }) => {
      await held.reached;
      const args: [{ step: number; settings: null; reason: null }] = [{ step: 2, settings: null, reason: null }];
      const answer = await handle.executeUpdate(rollbackUpdate, { args, updateId: randomUUID() });
      expect(answer).toEqual({ first: true, step: 2, from: 3 });
      expect(await handle.result()).toMatchObject({ state: 'completed', branch: 1, step: 5, overlap: [] });
      held.release();
      expect(trained(fake).slice(3)).toEqual([
        [1, 3, 2, null],
        [1, 4, 3, 2],
        [1, 5, 4, 3],
      ]);
      const onBranch = fake.rollouts.filter(({ branch }) => branch === 1);
      expect(onBranch.find(({ step }) => step === 4)?.policy).toMatchObject({ branch: 0, step: 2 });
    });
  });

  test('go on in a run that had ended with what they would have sampled from', async () => {
    const config = { steps: 5, maxStaleness: 1, learningRateSchedule: 'constant' as const };
    const whole = await playWhole({ config });
    const short = { fake: { maxStaleness: 1 }, config: { ...config, steps: 3 } };
    await bed.play({ maxCachedWorkflows, ...short }, async (started) => {
      await started.handle.result();
      expect(await (await startAgain(started, { steps: 5 })).result()).toMatchObject({ state: 'completed', step: 5 });
      expect(policies(started.fake)).toEqual(policies(whole));
      expect(plans(started.fake)).toMatchObject({
        trainings: whole.trainings.map((input) => [input.step, input.inputsSha256]),
      });
    });
  });

  test('end with the failure of a training, or of a rollout once the steps before it are trained', async () => {
    const fail = (activity: ActivityName, step: number) => (name: ActivityName, input: unknown) => {
      if (name === activity && isAt(input, step))
        throw ApplicationFailure.nonRetryable(`${name} ${step}`, 'StoreCorrupt');
    };
    const config = { steps: 4, maxStaleness: 1 };
    const play = (activity: ActivityName) =>
      bed.play({ maxCachedWorkflows, fake: { before: fail(activity, 2) }, config }, async ({ handle, fake }) => {
        await expect(handle.result()).rejects.toMatchObject({
          cause: { type: 'StoreCorrupt', message: `${activity} 2` },
        });
        expect(fake.states.at(-1)).toMatchObject({ state: 'failed', step: 1 });
        return trained(fake);
      });
    expect(await play('train')).toEqual([[0, 1, 0, null]]);
    expect(await play('rollout')).toEqual([[0, 1, 0, null]]);
  });
});

test('steps that overlap end when nothing is left to learn, as many steps later as others would', async () => {
  const afterFirst = ({ step }: RolloutInput): GroupResult['use'] => (step > 1 ? 'no-variance' : 'trained');
  const config = { steps: 20, groupsPerStep: 1, replacementRounds: 0, maxStaleness: 2 };
  await bed.play({ fake: { use: afterFirst }, config }, async ({ handle, fake }) => {
    expect(await handle.result()).toMatchObject({ state: 'stopped', step: 11 });
    expect(Math.max(...fake.rollouts.map(({ step }) => step))).toBe(11);
  });
});

/** Starts it again like `temper train --steps N` with a run that has ended. */
function startAgain({ handle, client, input, workflowQueue }: StartedRun, settings: { steps: number }) {
  return client.workflow.start<typeof trainRun>('trainRun', {
    workflowId: handle.workflowId,
    taskQueue: workflowQueue,
    args: [{ ...input, resume: { rollback: null, settings } }],
  });
}
