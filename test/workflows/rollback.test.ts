import { randomUUID } from 'node:crypto';

import { ApplicationFailure } from '@temporalio/activity';
import { describe, expect, test } from 'vitest';

import type { Settings } from '../../core/rules/settings.ts';
import { pauseUpdate, resumeUpdate, rollbackUpdate, setUpdate } from '../../workflows/messages.ts';
import type { ResumeFrom } from '../../workflows/run.ts';
import type { trainRun } from '../../workflows/train-run.ts';
import { bed } from './bed.ts';
import type { ActivityName, FakeRun } from './fake-activities.ts';
import { CACHES, eventually, holdTraining, type RunHandle, type StartedRun, untilProgress } from './harness.ts';

const rollBack = (handle: RunHandle, step: number, settings: Settings | null = null, updateId: string = randomUUID()) =>
  handle.executeUpdate(rollbackUpdate, { args: [{ step, settings, reason: null }], updateId });

const trained = ({ trainings }: FakeRun) => trainings.map(({ branch, step }) => `${branch}/${step}`);

/** Starts it again like `temper rollback` with a run that has ended. */
function startAgain({ handle, client, input, workflowQueue }: StartedRun, resume: ResumeFrom): Promise<RunHandle> {
  return client.workflow.start<typeof trainRun>('trainRun', {
    workflowId: handle.workflowId,
    taskQueue: workflowQueue,
    args: [{ ...input, resume }],
  });
}

describe.each(CACHES)('a rollback, %s', (_, maxCachedWorkflows) => {
  test.each([[null], [1]])(
    'of a run under way gives up the step in hand and trains anew on a branch (continue-as-new every %s)',
    async (every) => {
      const held = holdTraining(4);
      const config = { steps: 5, evalEvery: 2, continueAsNewEvery: every };
      await bed.play({ maxCachedWorkflows, fake: held, config }, async ({ handle, fake }) => {
        await held.reached;
        expect(await rollBack(handle, 2, { learningRate: 0.5 })).toEqual({ first: true, step: 2, from: 3 });
        const state = await handle.result();
        held.release();
        expect(trained(fake)).toEqual(['0/1', '0/2', '0/3', '1/3', '1/4', '1/5']);
        expect(state).toMatchObject({
          state: 'completed',
          branch: 1,
          lineage: [{ branch: 1, fromBranch: 0, fromStep: 2 }],
          step: 5,
          changes: [{ setting: 'learningRate', from: 0.01, to: 0.5, branch: 1, step: 3 }],
        });
        expect(state.notes).toEqual([
          'rollback to step 2 requested after step 3',
          'continued after step 2 on branch 1, from step 2 of branch 0',
        ]);
        expect(state.evals.map(({ step }) => step)).toEqual([0, 2, 4, 5]);
        expect(new Set(fake.summaries.map(({ adapterSha256 }) => adapterSha256)).size).toBe(6);
        // The deal goes on where step 2 left it: the same scenarios in other hands.
        const dealt = (branch: number) =>
          new Set(
            fake.rollouts
              .filter((input) => input.branch === branch && input.step === 3)
              .map(({ scenario }) => scenario),
          );
        expect(dealt(1)).toEqual(dealt(0));
        expect(fake.trainings[3]?.parent).toMatchObject({ branch: 0, step: 2 });
      });
    },
  );

  test('helps a run out of a step that fails again and again', async () => {
    const before = (name: ActivityName, input: unknown) => {
      const { branch, step } = input as { branch: number; step: number };
      if (name === 'train' && branch === 0 && step === 3)
        throw ApplicationFailure.retryable('the disk is full', 'StoreUnavailable');
    };
    await bed.play({ maxCachedWorkflows, fake: { before } }, async ({ handle, fake }) => {
      await eventually(
        async () => (await handle.describe()).raw.pendingActivities?.[0]?.attempt ?? 0,
        (attempt) => attempt > 1,
      );
      await rollBack(handle, 2);
      expect(await handle.result()).toMatchObject({ state: 'completed', step: 3, branch: 1 });
      expect(trained(fake)).toEqual(['0/1', '0/2', '1/3']);
    });
  });

  test('of a run that had ended starts it again from there, settings that were changed included', async () => {
    const held = holdTraining(1);
    await bed.play({ maxCachedWorkflows, fake: held, config: { steps: 4 } }, async (started) => {
      const { handle, fake } = started;
      await held.reached;
      await handle.executeUpdate(setUpdate, { args: [{ settings: { groupSize: 3 }, reason: null }] });
      held.release();
      await handle.result();
      const rollback = { requestId: 'a', step: 2, finished: 4, reason: 'it diverged' };
      const again = await startAgain(started, { rollback, settings: { steps: 3 } });
      const state = await again.result();
      expect(trained(fake)).toEqual(['0/1', '0/2', '0/3', '0/4', '1/3']);
      expect(state).toMatchObject({ state: 'completed', branch: 1, step: 3, steps: 3, evalAfter: { step: 3 } });
      expect(state.notes).toEqual([
        'rollback to step 2 requested after step 4, because: it diverged',
        'continued after step 2 on branch 1, from step 2 of branch 0',
      ]);
      expect(state.changes.map(({ setting, branch, step }) => [setting, branch, step])).toEqual([
        ['groupSize', 0, 2],
        ['steps', 1, 3],
      ]);
      expect(fake.rollouts.at(-1)).toMatchObject({ branch: 1, attempts: 3 });
      // Told again after a lost answer, it is the branch of before.
      const twice = await startAgain(started, { rollback, settings: null });
      expect(await twice.result()).toMatchObject({ branch: 1, step: 3 });
      expect(trained(fake)).toHaveLength(5);
      // Without a wish to go back it goes on where its newest branch stands.
      const on = await startAgain(started, { rollback: null, settings: { steps: 4 } });
      expect(await on.result()).toMatchObject({ state: 'completed', branch: 1, step: 4 });
      expect(trained(fake).at(-1)).toBe('1/4');
    });
  });

  test('of a paused run goes back and stays paused', async () => {
    const held = holdTraining(2);
    await bed.play({ maxCachedWorkflows, fake: held }, async ({ handle, fake }) => {
      await held.reached;
      await handle.executeUpdate(pauseUpdate, { args: [{ reason: null }] });
      await rollBack(handle, 1);
      const state = await untilProgress(handle, (now) => now.branch === 1 && now.state === 'paused');
      expect(state).toMatchObject({ step: 1, lineage: [{ branch: 1, fromBranch: 0, fromStep: 1 }] });
      held.release();
      expect(trained(fake).filter((step) => step.startsWith('1/'))).toEqual([]);
      await handle.executeUpdate(resumeUpdate);
      expect(await handle.result()).toMatchObject({ state: 'completed', branch: 1, step: 3 });
    });
  });

  test('that is told twice makes one branch', async () => {
    const held = holdTraining(3);
    await bed.play({ maxCachedWorkflows, fake: held }, async ({ handle, fake }) => {
      await held.reached;
      const updateId = randomUUID();
      await handle.executeUpdate(pauseUpdate, { args: [{ reason: null }] });
      const first = await rollBack(handle, 1, null, updateId);
      expect(await rollBack(handle, 1, null, updateId)).toEqual(first);
      expect(await rollBack(handle, 1)).toEqual({ ...first, first: false });
      await untilProgress(handle, ({ branch }) => branch === 1);
      expect(await rollBack(handle, 1)).toEqual({ ...first, first: false });
      await handle.executeUpdate(resumeUpdate);
      held.release();
      expect(await handle.result()).toMatchObject({ branch: 1, step: 3 });
      // Steps that were given up may still end, on the branch that they were begun on.
      expect(trained(fake).filter((step) => !step.startsWith('0/'))).toEqual(['1/2', '1/3']);
    });
  });
});

test('a second rollback goes back on the branch of the first, or before it', async () => {
  const held = holdTraining(3);
  await bed.play({ fake: held, config: { steps: 4 } }, async (started) => {
    await held.reached;
    held.release();
    await started.handle.result();
    const back = (requestId: string, step: number): ResumeFrom => ({
      rollback: { requestId, step, finished: 4, reason: null },
      settings: null,
    });
    await (await startAgain(started, back('a', 2))).result();
    const deeper = await (await startAgain(started, back('b', 3))).result();
    expect(deeper.lineage).toEqual([
      { branch: 1, fromBranch: 0, fromStep: 2 },
      { branch: 2, fromBranch: 1, fromStep: 3 },
    ]);
    const before = await (await startAgain(started, back('c', 1))).result();
    expect(before.lineage).toEqual([{ branch: 3, fromBranch: 0, fromStep: 1 }]);
    expect(trained(started.fake).slice(4)).toEqual(['1/3', '1/4', '2/4', '3/2', '3/3', '3/4']);
  });
});

test('where the store has nothing to go back to, the run goes on as it was and says so', async () => {
  const held = holdTraining(2);
  const before = (name: ActivityName, input: unknown) => {
    if (name === 'locate') throw ApplicationFailure.nonRetryable('blobs/a is missing', 'StoreCorrupt');
    return held.before(name, input);
  };
  await bed.play({ fake: { before } }, async ({ handle, fake }) => {
    await held.reached;
    await rollBack(handle, 1);
    held.release();
    const state = await handle.result();
    expect(state).toMatchObject({ state: 'completed', branch: 0, step: 3 });
    expect(state.notes.at(-1)).toBe(
      'could not roll back to step 1 (StoreCorrupt: blobs/a is missing); the run continues unchanged',
    );
    expect(trained(fake)).toEqual(['0/1', '0/2', '0/3']);
  });
});

test('a step that is not finished, or after which nothing is left, is refused', async () => {
  const held = holdTraining(2);
  await bed.play({ fake: held }, async ({ handle, input }) => {
    await held.reached;
    const { run } = input.config;
    await expect(rollBack(handle, 2)).rejects.toMatchObject({
      cause: {
        message: `the step to roll back to must be a whole number from 0 to 1, the last finished step of ${run}, got 2; pass one of these`,
      },
    });
    await expect(rollBack(handle, 1, { steps: 1 })).rejects.toMatchObject({
      cause: { message: expect.stringContaining('steps must be more than the 1 that are done') as string },
    });
    held.release();
    expect(await handle.result()).toMatchObject({ state: 'completed', branch: 0 });
  });
});
