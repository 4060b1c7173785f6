/** A planned step, trained in its workflow, or found in the store. */
import type { GroupResult, TrainInput } from '../../core/contract/contract.ts';
import { TemperError } from '../../core/contract/failures.ts';
import { KEPT_JOURNAL_STEPS, removeJournals } from '../../store/records/groups/journals.ts';
import { manifestKey } from '../../store/layout.ts';
import { checkpointOf } from '../../store/records/runs/manifest.ts';
import { readCommit } from '../../store/records/runs/run-reader.ts';
import type { LoopRun } from './loop-run.ts';
import { addStep, printWarnings, writeState } from './loop-state.ts';

export interface TrainedStep {
  step: number;
  /** `run@step` of what samples from now on. */
  inferenceName: string;
  /** False where no group carried a signal: the policy is the one before. */
  trained: boolean;
  /** Why nothing was trained; null where something was. */
  reason: string | null;
  metrics: Record<string, number | null>;
}

export async function takeStep(run: LoopRun, work: TrainInput, results: GroupResult[]): Promise<TrainedStep> {
  const place = { run: run.name, branch: 0, step: work.step };
  const isNew = (await readCommit(run.store, place)) === null;
  if (isNew) await writeState(run, { phase: 'train', waitingFor: `train step ${work.step} on a GPU worker` });
  const { project, model, backend } = run;
  const made = isNew ? await backend.runStep({ project, model, work: { kind: 'train', input: work } }) : null;
  const commit = await readCommit(run.store, place);
  if (commit === null) throw elsewhere(run, manifestKey(place));
  const { inputsSha256, metrics } = commit.manifest;
  if (inputsSha256 !== work.inputsSha256) throw conflict(run, work, inputsSha256);
  const checkpoint = checkpointOf(run.name, commit);
  if (work.step > run.step) {
    await finish(run, checkpoint, work.step, { played: results, trainer: made?.seconds ?? {} });
    printWarnings(run);
  }
  return { step: work.step, inferenceName: `${run.name}@${work.step}`, trained: true, reason: null, metrics };
}

/** The script goes on with the next step. */
export async function finish(
  run: LoopRun,
  checkpoint: LoopRun['checkpoint'],
  step: number,
  { played, trainer }: { played: GroupResult[]; trainer: Record<string, number> },
): Promise<void> {
  const seconds = (performance.now() - run.stepBeganAtMs) / 1000;
  Object.assign(run, { step, checkpoint, gathered: { train: 0, val: 0 }, stepBeganAtMs: performance.now() });
  await addStep(run, step, played, { step: seconds, trainer });
  await writeState(run, {});
  await removeJournals(run.store, run.name, step - KEPT_JOURNAL_STEPS);
}

export function conflict(
  { name }: LoopRun,
  { step, inputsSha256 }: Pick<TrainInput, 'step' | 'inputsSha256'>,
  recorded: string,
): TemperError {
  return new TemperError(
    'StepConflict',
    `step ${step} of ${name} is already in the store, made from inputs ${recorded}, but was requested from inputs ${inputsSha256}; train other groups or chats as the next step, or start a new model`,
  );
}

function elsewhere({ name }: LoopRun, key: string): TemperError {
  return new TemperError(
    'StoreCorrupt',
    `${key} is missing after the step was trained, because a model of the same name in another store was trained; give ${name} another project or name`,
  );
}
