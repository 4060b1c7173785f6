import { ApplicationFailure } from '@temporalio/activity';
import { expect, test } from 'vitest';

import { planInitialise } from '../../core/plan/step.ts';
import { bed } from './bed.ts';
import { createGate } from './harness.ts';
import { planWork, startStep } from './loop-step.ts';

test('a step that is asked for again while it is trained is joined, and trained once', async () => {
  const [reached, released] = [createGate(), createGate()];
  let trainings = 0;
  const before = async (name: string): Promise<void> => {
    if (name !== 'train') return;
    trainings += 1;
    reached.open();
    await released.opened;
  };
  await bed.play({ fake: { before } }, async (started) => {
    await started.handle.terminate('only its workers are needed');
    const work = planWork(started);
    const first = await startStep(started, work);
    await reached.opened;
    const second = await startStep(started, work);
    released.open();
    expect(second.firstExecutionRunId).toBe(first.firstExecutionRunId);
    const result = await first.result();
    expect(result.checkpoint.step).toBe(1);
    expect(await second.result()).toEqual(result);
    expect(trainings).toBe(1);
  });
});

test('step 0 makes the adapter', async () => {
  await bed.play({}, async (started) => {
    await started.handle.terminate('only its workers are needed');
    const handle = await startStep(started, { kind: 'initialise', input: planInitialise(started.input.config, 0) });
    expect((await handle.result()).checkpoint.step).toBe(0);
  });
});

test('what no retry mends ends the step with its type', async () => {
  const before = (name: string): void => {
    if (name === 'train') throw ApplicationFailure.nonRetryable('sampled by another', 'PolicyMismatch');
  };
  await bed.play({ fake: { before } }, async (started) => {
    await started.handle.terminate('only its workers are needed');
    const handle = await startStep(started, planWork(started));
    await expect(handle.result()).rejects.toMatchObject({ cause: { cause: { type: 'PolicyMismatch' } } });
  });
});
