/** `--warm-start FILE`: the first steps of a run train examples before its agent is played. */
import type { SupervisedConfig } from '../../core/contract.ts';
import { UsageError } from '../command-line/errors.ts';
import { planSupervisedSteps, readExamplesFile, stepsOfEpochs, supervisedFields } from './read-examples.ts';
import { WARM_START_FLAGS } from './example-flag-table.ts';

export interface WarmStart {
  readonly options: { supervised?: SupervisedConfig };
  readonly examples: Uint8Array | null;
}

/** `values` by the places of their fields. Without a file, flags that would have no effect are refused. */
export async function readWarmStart(
  file: string | null,
  values: ReadonlyMap<string, unknown>,
  cwd: string,
): Promise<WarmStart> {
  const given = supervisedFields(values);
  if (file === null) {
    const idle = Object.entries(WARM_START_FLAGS).find(([, { path }]) => values.has(path));
    if (idle === undefined) return { options: {}, examples: null };
    throw new UsageError(`--${idle[0]} has no effect without --warm-start; pass --warm-start FILE, or leave it out`);
  }
  const examples = await readExamplesFile(file, cwd);
  const supervised = planSupervisedSteps(examples, given);
  const steps = supervised.steps ?? stepsOfEpochs(supervised, 1);
  return { options: { supervised: { ...supervised, steps } }, examples: examples.bytes };
}
