/** Watches a run in its store, with pending activities if a server answers. */
import { requireRun, readEvalRollouts, readGroups } from '../../store/records/run-reader.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { WorkFailed, EXIT } from '../command-line/errors.ts';
import { isFinal, readProgress, followRun, unlessAway, type RunProgress } from './follow-run.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { resultLines } from './result.ts';
import { createViewer, type Viewer } from './viewer.ts';
import type { RunState, StepSummary } from '../../core/contract.ts';
import type { Store } from '../../store/store.ts';
import { branchOfStep } from '../../core/lineage.ts';
import type { AttemptRecord } from '../../store/records/trajectories.ts';

export async function watchRun(environment: CommandEnvironment, run: string): Promise<number> {
  const { project, env, output, signal } = environment;
  const store = await openProjectStore(project, env);
  const found = await requireRun(store, run);
  const before = { state: null, steps: [] };
  const viewer = createViewer(output, { run, before, hint: 'Ctrl-C stops watching; the run continues' });
  const ended = new AbortController();
  const over = AbortSignal.any([signal, ended.signal]);
  await Promise.all([
    showRun(store, run, viewer, { signal, isOver: isFinal }).finally(() => ended.abort()),
    isFinal(found.state)
      ? null
      : import('./pending.ts').then((pending) => pending.showAnyPending(environment, { store, run }, viewer, over)),
  ]);
  viewer.close();
  const progress = await readProgress(store, run);
  const { state } = progress;
  if (isFinal(state)) for (const line of resultLines(progress)) output.line(line);
  if (state?.state === 'failed')
    throw new WorkFailed(`the run ${run} failed: ${state.failure ?? 'no reason was recorded'}`);
  if (state?.state === 'cancelled') throw new WorkFailed(`the run ${run} was cancelled; its committed steps stay`);
  return EXIT.ok;
}

/** Shows a run until the signal is aborted or `isOver` is true. */
export async function showRun(
  store: Store,
  run: string,
  viewer: Viewer,
  { signal, isOver }: { signal: AbortSignal; isOver: (state: RunState | null) => boolean },
): Promise<void> {
  let hasToldFailure = false;
  let hasToldAway = false;
  for await (const look of followRun(store, run, signal)) {
    if ('away' in look) {
      if (!hasToldAway) viewer.note(`${look.away}; retrying until the store answers`);
      hasToldAway = true;
      continue;
    }
    hasToldAway = false;
    const progress = look.seen;
    viewer.progress(progress);
    const failure: string | null = hasToldFailure ? null : await firstFailure(store, progress);
    if (failure !== null) viewer.note(failure);
    hasToldFailure ||= failure !== null;
    if (isOver(progress.state)) return;
  }
}

async function firstFailure(store: Store, progress: RunProgress): Promise<string | null> {
  const look = await unlessAway(findFirstFailure(store, progress));
  return 'seen' in look ? look.seen : null;
}

/** First recorded failure of an attempt; null until there is one. */
async function findFirstFailure(store: Store, { state, steps }: RunProgress): Promise<string | null> {
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
