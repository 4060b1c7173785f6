/** One step of a loop that a script owns: a GPU activity of its own workflow, so that asking for it twice trains once. */
import { upsertSearchAttributes } from '@temporalio/workflow';

import type { InitialiseInput, TrainInput, TrainResult } from '../core/contract/contract.ts';
import { createGpuActivities } from './activities.ts';
import { temperAgent, temperPhase, temperRun, temperStep } from './search-attributes.ts';

export type StepWork = { kind: 'initialise'; input: InitialiseInput } | { kind: 'train'; input: TrainInput };

export interface TrainStepInput {
  /** The project of the loop, in place of a run's agent. */
  project: string;
  gpuQueue: string;
  work: StepWork;
}

/** The activity finds in the store whether the step was trained before: by its number and the hash of its inputs. */
export async function trainStep({ project, gpuQueue, work }: TrainStepInput): Promise<TrainResult> {
  const gpu = createGpuActivities(gpuQueue);
  upsertSearchAttributes([
    { key: temperRun, value: work.input.run },
    { key: temperAgent, value: project },
    { key: temperStep, value: work.kind === 'train' ? work.input.step : 0 },
    { key: temperPhase, value: work.kind },
  ]);
  return work.kind === 'train' ? gpu.train(work.input) : gpu.initialise(work.input);
}
