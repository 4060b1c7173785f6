/** A step of a script's loop, as the local backend starts it; the run that the bed starts is another matter. */
import { planLoopTraining } from '../../sdk/loop/plan-loop.ts';
import { trainWorkflowId } from '../../core/names/queues.ts';
import type { StepWork, trainStep } from '../../workflows/train-step.ts';
import { STORE_ID, type StartedRun } from './harness.ts';

const HASH = 'a'.repeat(64);

export function planWork({ input }: StartedRun): StepWork {
  const { config } = input;
  const parent = { run: config.run, branch: 0, step: 0, manifestSha256: HASH, adapterSha256: HASH };
  const groups = [{ group: 0, rolloutsSha256: HASH, judgedSha256: HASH }];
  return { kind: 'train', input: planLoopTraining(config, config, { step: 1, parent, groups }) };
}

export function startStep(started: StartedRun, work: StepWork) {
  const { client, input, workflowQueue } = started;
  const { run } = input.config;
  return client.workflow.start<typeof trainStep>('trainStep', {
    workflowId: trainWorkflowId(STORE_ID, 'test', run, work.kind === 'train' ? work.input.step : 0),
    taskQueue: workflowQueue,
    args: [{ project: 'test', gpuQueue: input.queues.gpu, work }],
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
  });
}
