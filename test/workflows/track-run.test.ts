import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, test } from 'vitest';

import type { TrackInput } from '../../core/contract/outbound.ts';
import { trackWorkflowId } from '../../core/names/queues.ts';
import { runResumedSignal } from '../../workflows/messages.ts';
import { bed } from './bed.ts';
import { CACHES, createGate } from './harness.ts';

describe.each(CACHES)('telling of a run, %s', (_, maxCachedWorkflows) => {
  test('each target is told by a workflow of its own; one that fails delays neither the run nor the other', async () => {
    const told: TrackInput[] = [];
    let isAway = true;
    const tell = async (input: TrackInput) => {
      if (input.target === 'wandb' && isAway)
        throw ApplicationFailure.create({ message: 'away', type: 'TargetUnavailable', nextRetryDelay: 100 });
      told.push(input);
      return { over: true };
    };
    const track = { targets: ['wandb', 'csv'], tell };
    await bed.play({ maxCachedWorkflows, track }, async ({ handle, client, input: { config } }) => {
      const { run } = config;
      const resultOf = (target: string) => client.workflow.getHandle(trackWorkflowId(run, run, target)).result();
      expect(await handle.result()).toMatchObject({ state: 'completed' });
      await resultOf('csv');
      expect(told).toEqual([{ run, target: 'csv', from: 'start' }]);
      isAway = false;
      await resultOf('wandb');
      expect(told.map(({ target }) => target)).toEqual(['csv', 'wandb']);
    });
  });

  test('a run that is started again is told again, though its old end is just being told', async () => {
    const [reached, released] = [createGate(), createGate()];
    let times = 0;
    const tell = async () => {
      times += 1;
      if (times > 1) return { over: true };
      reached.open();
      await released.opened;
      return { over: true };
    };
    const track = { targets: ['csv'], tell };
    await bed.play({ maxCachedWorkflows, track }, async ({ client, input: { config } }) => {
      const telling = client.workflow.getHandle(trackWorkflowId(config.run, config.run, 'csv'));
      await reached.opened;
      await telling.signal(runResumedSignal);
      released.open();
      await telling.result();
      expect(times).toBe(2);
    });
  });
});
