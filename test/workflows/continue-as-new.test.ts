import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { describe, expect, test } from 'vitest';

import type { RolloutInput, RunState } from '../../core/contract/contract.ts';
import { bed } from './bed.ts';
import type { FakeRun } from './fake-activities.ts';
import { CACHES, eventually, type RunSetup } from './harness.ts';

/** Replacements, an empty step and evaluations on the way, so that all that is carried matters. */
function use({ step, group }: RolloutInput): 'trained' | 'no-variance' {
  return step === 3 || (step === 2 && group === 0) ? 'no-variance' : 'trained';
}

describe.each(CACHES)('continue-as-new, %s', (_, maxCachedWorkflows) => {
  test('every two steps gives the same plan, results and state', async () => {
    const setup: RunSetup = { maxCachedWorkflows, fake: { use }, config: { steps: 5, evalEvery: 2 } };
    const whole = await bed.play(setup, async ({ handle, fake }) => ({ state: await handle.result(), fake }));
    const config = { ...setup.config, continueAsNewEvery: 2 };
    await bed.play({ ...setup, config }, async ({ handle, fake }) => {
      expect(timeless(await handle.result())).toEqual(timeless(whole.state));
      expect(plans(fake)).toEqual(plans(whole.fake));
      expect(fake.summaries.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5]);
    });
  });

  test('waits until what it has begun to write is written', async () => {
    await bed.play({ maxCachedWorkflows, config: { steps: 2, continueAsNewEvery: 1 } }, async ({ handle, client }) => {
      await handle.result();
      const { events } = await client.workflow.getHandle(handle.workflowId, handle.firstExecutionRunId).fetchHistory();
      const completed = (events ?? []).filter((event) => event.activityTaskCompletedEventAttributes);
      expect(completed).toHaveLength(
        (events ?? []).filter((event) => event.activityTaskScheduledEventAttributes).length,
      );
    });
  });

  test('makes one history per step and counts time from the first', async () => {
    const config = { steps: 3, continueAsNewEvery: 1 };
    await bed.play({ maxCachedWorkflows, config }, async ({ handle, client }) => {
      const { wallSeconds } = await handle.result();
      const chain = await eventually(
        () => listExecutions(client, `WorkflowId = '${handle.workflowId}'`),
        ({ length }) => length === 3,
      );
      const startsMs = chain.map(({ startTime }) => startTime.getTime());
      const [firstMs, lastMs] = [Math.min(...startsMs), Math.max(...startsMs)];
      expect(wallSeconds).toBeGreaterThanOrEqual((lastMs - firstMs) / 1000);
      expect(wallSeconds).toBeLessThan((Date.now() - firstMs) / 1000);
    });
  });
});

function timeless(state: RunState): RunState {
  return { ...state, run: '', wallSeconds: 0, costs: { ...state.costs!, seconds: 0 } };
}

/** Visibility lags behind: ask again. */
async function listExecutions(client: Client, query: string): Promise<WorkflowExecutionInfo[]> {
  const executions: WorkflowExecutionInfo[] = [];
  for await (const execution of client.workflow.list({ query })) executions.push(execution);
  return executions;
}

function plans(fake: FakeRun): unknown {
  return {
    rollouts: fake.rollouts.map(({ step, group, inputsSha256 }) => `${step}/${group}/${inputsSha256}`).toSorted(),
    trainings: fake.trainings.map(({ step, inputsSha256 }) => [step, inputsSha256]),
    evaluations: fake.evaluations.map(({ step, inputsSha256 }) => [step, inputsSha256]),
    adapters: fake.summaries.map(({ adapterSha256 }) => adapterSha256),
  };
}
