import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, test } from 'vitest';

import type { TrackInput } from '../../core/contract/outbound.ts';
import { trackWorkflowId } from '../../core/names/queues.ts';
import { runResumedSignal } from '../../workflows/messages.ts';
import { bed } from './bed.ts';
import { CACHES, createGate } from './harness.ts';

describe.each(CACHES)('delivery of a run, %s', (_, maxCachedWorkflows) => {
  test('each target is served by a workflow of its own; one that fails delays neither the run nor the other', async () => {
    const delivered: TrackInput[] = [];
    let isAway = true;
    const deliver = async (input: TrackInput) => {
      if (input.target === 'wandb' && isAway)
        throw ApplicationFailure.create({ message: 'away', type: 'TargetUnavailable', nextRetryDelay: 100 });
      delivered.push(input);
      return { over: true };
    };
    const track = { targets: ['wandb', 'csv'], deliver };
    await bed.play({ maxCachedWorkflows, track }, async ({ handle, client, input: { config } }) => {
      const { run } = config;
      const resultOf = (target: string) => client.workflow.getHandle(trackWorkflowId(run, run, target)).result();
      expect(await handle.result()).toMatchObject({ state: 'completed' });
      await resultOf('csv');
      expect(delivered).toEqual([{ run, target: 'csv', from: 'start' }]);
      isAway = false;
      await resultOf('wandb');
      expect(delivered.map(({ target }) => target)).toEqual(['csv', 'wandb']);
    });
  });

  test('a run that is started again is delivered again, though its old end is just being delivered', async () => {
    const [reached, released] = [createGate(), createGate()];
    let times = 0;
    const deliver = async () => {
      times += 1;
      if (times > 1) return { over: true };
      reached.open();
      await released.opened;
      return { over: true };
    };
    const track = { targets: ['csv'], deliver };
    await bed.play({ maxCachedWorkflows, track }, async ({ client, input: { config } }) => {
      const tracking = client.workflow.getHandle(trackWorkflowId(config.run, config.run, 'csv'));
      await reached.opened;
      await tracking.signal(runResumedSignal);
      released.open();
      await tracking.result();
      expect(times).toBe(2);
    });
  });
});
