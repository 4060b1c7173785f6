/** Why attempts fail: the first recorded failure, so that nobody has to look for it in a file. */
import type { RunState, StepSummary } from '../../core/contract.ts';
import { branchOfStep } from '../../core/lineage.ts';
import { readEvalRollouts, readGroups } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { AttemptRecord } from '../../store/records/trajectories.ts';
import type { RunProgress } from './follow-run.ts';

/** Null until a step or an evaluation had a failed attempt. */
export async function findFirstFailure(store: Store, { state, steps }: RunProgress): Promise<string | null> {
  if (state === null) return null;
  const evaluation = state.evals.find(({ failed }) => failed > 0);
  const step = steps.find(({ failedAttempts }) => failedAttempts > 0);
  if (evaluation === undefined && step === undefined) return null;
  const record = (await failedInEval(store, state, evaluation?.step)) ?? (await failedInStep(store, state, step));
  return record?.failure ? `an attempt failed: ${record.failure.message.split('\n')[0]}` : null;
}

async function failedInEval(
  store: Store,
  { run, lineage }: RunState,
  step?: number,
): Promise<AttemptRecord | undefined> {
  if (step === undefined) return undefined;
  const branch = branchOfStep(lineage, step);
  const rollouts = await readEvalRollouts(store, { run, branch, step });
  return rollouts?.attempts.find(({ failure }) => failure !== null);
}

async function failedInStep(
  store: Store,
  { run, lineage }: RunState,
  summary?: StepSummary,
): Promise<AttemptRecord | undefined> {
  if (summary === undefined) return undefined;
  const { step } = summary;
  const groups = await readGroups(store, { run, branch: branchOfStep(lineage, step), step });
  return groups.flatMap(({ rollouts }) => rollouts.attempts).find(({ failure }) => failure !== null);
}
