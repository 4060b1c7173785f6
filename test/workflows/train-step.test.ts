import { ApplicationFailure } from '@temporalio/activity';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';

import { planLoopTraining } from '../../core/plan-loop.ts';
import { planInitialise } from '../../core/plan-step.ts';
import { trainWorkflowId } from '../../core/queues.ts';
import type { StepWork, trainStep } from '../../workflows/train-step.ts';
import { createGate, openTestBed, type StartedRun, type TestBed } from './harness.ts';

let bed: TestBed;

beforeAll(async () => {
  bed = await openTestBed(inject('temporalAddress'), inject('workflowBundle'));
});

afterAll(() => bed.close());

const HASH = 'a'.repeat(64);

function planWork({ input }: StartedRun): StepWork {
  const { config } = input;
  const parent = { run: config.run, branch: 0, step: 0, manifestSha256: HASH, adapterSha256: HASH };
  const groups = [{ group: 0, rolloutsSha256: HASH, judgedSha256: HASH }];
  const { train, learningRate } = config;
  return { kind: 'train', input: planLoopTraining(config, { step: 1, parent, groups, learningRate, train }) };
}

/** As the local backend starts it; the run that the bed starts is another matter. */
function start(started: StartedRun, work: StepWork) {
  const { client, input, workflowQueue } = started;
  const { run } = input.config;
  return client.workflow.start<typeof trainStep>('trainStep', {
    workflowId: trainWorkflowId('test', run, work.kind === 'train' ? work.input.step : 0),
    taskQueue: workflowQueue,
    args: [{ project: 'test', gpuQueue: input.queues.gpu, work }],
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
  });
}

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
    const first = await start(started, work);
    await reached.opened;
    const second = await start(started, work);
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
    const handle = await start(started, { kind: 'initialise', input: planInitialise(started.input.config, 0) });
    expect((await handle.result()).checkpoint.step).toBe(0);
  });
});

test('what no retry mends ends the step with its type', async () => {
  const before = (name: string): void => {
    if (name === 'train') throw ApplicationFailure.nonRetryable('sampled by another', 'PolicyMismatch');
  };
  await bed.play({ fake: { before } }, async (started) => {
    await started.handle.terminate('only its workers are needed');
    const handle = await start(started, planWork(started));
    await expect(handle.result()).rejects.toMatchObject({ cause: { cause: { type: 'PolicyMismatch' } } });
  });
});
