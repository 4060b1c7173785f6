import { randomUUID } from 'node:crypto';

import { WorkflowUpdateFailedError } from '@temporalio/client';
import { describe, expect, test } from 'vitest';

import { progressQuery, setUpdate, stopUpdate } from '../../workflows/messages.ts';
import { bed } from './bed.ts';
import { CACHES, holdTraining, untilProgress } from './harness.ts';

describe.each(CACHES)('an end that a person asks for, %s', (_, maxCachedWorkflows) => {
  test('a stopped run finishes its step and keeps the result', async () => {
    const held = holdTraining(2);
    await bed.play({ maxCachedWorkflows, fake: held, config: { steps: 20 } }, async ({ handle, fake }) => {
      await held.reached;
      const answer = await handle.executeUpdate(stopUpdate, { args: [{ reason: 'good enough' }] });
      expect(answer).toEqual({ first: true, afterStep: 2 });
      expect((await handle.query(progressQuery)).state).toBe('stopping');
      held.release();
      const state = await handle.result();
      expect(state).toMatchObject({ state: 'stopped', phase: 'done', step: 2, failure: null });
      expect(state.notes).toEqual(['stop requested during train, because: good enough']);
      expect(fake.states.at(-1)).toEqual(state);
      expect(fake.trainings.map(({ step }) => step)).toEqual([1, 2]);
    });
  });

  test('a stop that is told twice, or whose answer was lost, changes nothing more', async () => {
    const held = holdTraining(1);
    await bed.play({ maxCachedWorkflows, fake: held }, async ({ handle }) => {
      await held.reached;
      const updateId = randomUUID();
      const told = { args: [{ reason: null }] as [{ reason: null }], updateId };
      const [first, again] = [
        await handle.executeUpdate(stopUpdate, told),
        await handle.executeUpdate(stopUpdate, told),
      ];
      expect(again).toEqual(first);
      expect(await handle.executeUpdate(stopUpdate, { args: [{ reason: 'me too' }] })).toMatchObject({ first: false });
      held.release();
      expect((await handle.result()).notes).toEqual(['stop requested during train, no reason given']);
    });
  });

  test('a stop is kept across continue-as-new', async () => {
    const held = holdTraining(2);
    const config = { steps: 20, continueAsNewEvery: 1 };
    await bed.play({ maxCachedWorkflows, fake: held, config }, async ({ handle }) => {
      await held.reached;
      // A run that is stopped continues as new only with settings that it has yet to apply.
      await handle.executeUpdate(setUpdate, { args: [{ settings: { learningRate: 0.5 }, reason: null }] });
      await handle.executeUpdate(stopUpdate, { args: [{ reason: null }] });
      held.release();
      expect(await handle.result()).toMatchObject({ state: 'stopped', step: 2, changes: [{ to: 0.5 }] });
    });
  });

  test('a cancelled run writes its end and starts nothing more', async () => {
    const held = holdTraining(2);
    await bed.play({ maxCachedWorkflows, fake: held }, async ({ handle, fake }) => {
      await held.reached;
      await handle.cancel();
      await expect(handle.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
      held.release();
      expect(fake.states.at(-1)).toMatchObject({ state: 'cancelled', step: 1, waitingFor: null, failure: null });
      expect(fake.summaries.map(({ step }) => step)).toEqual([1]);
      expect((await handle.describe()).status.name).toBe('CANCELLED');
    });
  });
});

test('a bad stop is refused before it enters the history', async () => {
  const held = holdTraining(1);
  await bed.play({ fake: held }, async ({ handle }) => {
    await held.reached;
    const told = handle.executeUpdate(stopUpdate, { args: [{ reason: 'x'.repeat(501) }] });
    await expect(told).rejects.toThrow(WorkflowUpdateFailedError);
    held.release();
    expect((await handle.result()).state).toBe('completed');
  });
});

test('a run that waits for a GPU worker says for what, where and since when', async () => {
  await bed.play({ gpuWorker: false }, async ({ handle, input }) => {
    const state = await untilProgress(handle, ({ phase }) => phase === 'initialise');
    const [what, since = ''] = (state.waitingFor ?? '').split(', since ');
    expect(what).toBe(`make checkpoint 0 of pocket on queue ${input.queues.gpu}`);
    expect(Date.parse(since)).toBeLessThanOrEqual(Date.now());
  });
});
