import { randomUUID } from 'node:crypto';

import { describe, expect, test } from 'vitest';

import { pauseUpdate, resumeUpdate, setUpdate, stopUpdate } from '../../workflows/messages.ts';
import { bed } from './bed.ts';
import { BOTH_CACHES, eventually, holdTraining, type RunHandle, untilPaused } from './harness.ts';

const pause = (handle: RunHandle, reason: string | null = null) =>
  handle.executeUpdate(pauseUpdate, { args: [{ reason }] });
const resume = (handle: RunHandle) => handle.executeUpdate(resumeUpdate);

describe.each(BOTH_CACHES)('a paused run, %s', (_, maxCachedWorkflows) => {
  test('finishes its step, begins none, says what it waits for, and goes on as if nothing had been', async () => {
    const whole = await bed.play({ maxCachedWorkflows }, async ({ handle, fake }) => (await handle.result(), fake));
    const held = holdTraining(2);
    await bed.play({ maxCachedWorkflows, fake: held }, async ({ handle, fake, input }) => {
      await held.reached;
      const answer = await pause(handle, 'the GPU is needed');
      expect(answer).toEqual({ first: true, afterStep: 2, since: expect.any(String) as string });
      // Written before the update was answered: who looks into the store now sees it.
      expect(fake.states.at(-1)).toMatchObject({ state: 'pausing', step: 1 });
      held.release();
      const resting = await untilPaused(handle);
      const { run } = input.config;
      expect(resting).toMatchObject({
        state: 'paused',
        step: 2,
        pause: { since: answer.since, reason: 'the GPU is needed' },
        waitingFor: `temper resume ${run}; paused since ${answer.since}, because: the GPU is needed`,
        notes: ['paused after step 2, because: the GPU is needed'],
      });
      await eventually(
        async () => fake.states.at(-1)?.state,
        (state) => state === 'paused',
      );
      expect(fake.rollouts.map(({ step }) => step)).toEqual([1, 1, 2, 2]);
      expect(await resume(handle)).toEqual({ first: true });
      const state = await handle.result();
      expect(state).toMatchObject({ state: 'completed', step: 3, pause: null });
      expect(fake.summaries.map(({ adapterSha256 }) => adapterSha256)).toEqual(
        whole.summaries.map(({ adapterSha256 }) => adapterSha256),
      );
    });
  });

  test('keeps its pause across continue-as-new, and what else it is told there', async () => {
    const held = holdTraining(2);
    const config = { steps: 20, continueAsNewEvery: 1 };
    await bed.play({ maxCachedWorkflows, fake: held, config }, async ({ handle, fake, client }) => {
      await held.reached;
      const { since } = await pause(handle);
      await handle.executeUpdate(setUpdate, { args: [{ settings: { steps: 4 }, reason: null }] });
      held.release();
      expect((await untilPaused(handle)).pause).toEqual({ since, reason: null });
      const { runId } = await client.workflow.getHandle(handle.workflowId).describe();
      expect(runId).not.toBe(handle.firstExecutionRunId);
      expect(await pause(handle, 'again')).toEqual({ first: false, afterStep: 2, since });
      expect(fake.trainings.map(({ step }) => step)).toEqual([1, 2]);
      await resume(handle);
      expect(await handle.result()).toMatchObject({ state: 'completed', step: 4, steps: 4 });
    });
  });

  test('is stopped where it stands', async () => {
    const held = holdTraining(1);
    await bed.play({ maxCachedWorkflows, fake: held }, async ({ handle }) => {
      await held.reached;
      await pause(handle);
      held.release();
      await untilPaused(handle);
      const answer = await handle.executeUpdate(stopUpdate, { args: [{ reason: null }] });
      expect(answer).toEqual({ first: true, afterStep: 1 });
      expect(await handle.result()).toMatchObject({ state: 'stopped', step: 1, pause: null, waitingFor: null });
    });
  });

  test('is cancelled where it stands', async () => {
    const held = holdTraining(1);
    await bed.play({ maxCachedWorkflows, fake: held }, async ({ handle, fake }) => {
      await held.reached;
      await pause(handle);
      held.release();
      await untilPaused(handle);
      await handle.cancel();
      await expect(handle.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
      expect(fake.states.at(-1)).toMatchObject({ state: 'cancelled', step: 1, pause: null });
    });
  });
});

test('a pause that is told twice, and one that is taken back in the same step, hold nothing up', async () => {
  const held = holdTraining(1);
  await bed.play({ fake: held }, async ({ handle }) => {
    await held.reached;
    const told = { args: [{ reason: null }] as [{ reason: null }], updateId: randomUUID() };
    const first = await handle.executeUpdate(pauseUpdate, told);
    expect(await handle.executeUpdate(pauseUpdate, told)).toEqual(first);
    expect(await resume(handle)).toEqual({ first: true });
    expect(await resume(handle)).toEqual({ first: false });
    held.release();
    const state = await handle.result();
    expect(state).toMatchObject({ state: 'completed', step: 3 });
    expect(state.notes).toEqual(['paused after step 1', 'resumed before the current step finished']);
  });
});

test('a run that stops is not paused', async () => {
  const held = holdTraining(1);
  await bed.play({ fake: held }, async ({ handle, input }) => {
    await held.reached;
    await handle.executeUpdate(stopUpdate, { args: [{ reason: null }] });
    await expect(pause(handle)).rejects.toMatchObject({
      cause: {
        message: `${input.config.run} is stopping after step 1 and cannot be paused; wait until it ends, then continue with temper rollback`,
      },
    });
    held.release();
    await handle.result();
  });
});

test("Temporal's UI tells of a pause and how it ends", async () => {
  const held = holdTraining(1);
  await bed.play({ fake: held }, async ({ handle, input }) => {
    await held.reached;
    await pause(handle, 'lunch');
    held.release();
    await untilPaused(handle);
    const { currentDetails } = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata');
    expect(currentDetails).toContain(`### ${input.config.run}: paused, step 1 of 3`);
    expect(currentDetails).toContain(`- **waiting for** temper resume ${input.config.run}; paused since`);
  });
});
