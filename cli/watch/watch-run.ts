/** Watches a run in its store, with pending activities if a server answers. */
import { WorkFailed } from '../../core/contract/failures.ts';
import { readStored, TimesFileSchema } from '../../store/records/file-schemas.ts';
import { requireRun, readEvalRollouts, readGroups } from '../../store/records/runs/run-reader.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { isFinal, readProgress, followRun, unlessAway, type RunProgress } from './follow-run.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { describeDisk } from './disk.ts';
import { resultLines } from './result.ts';
import { createViewer, type Viewer } from './viewer.ts';
import type { EvalResult, RunState, StepSummary } from '../../core/contract/contract.ts';
import type { Store } from '../../store/store.ts';
import { branchOfStep } from '../../core/names/lineage.ts';
import { evalTimesKey, groupTimesKey } from '../../store/layout.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';

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
  const untold = new Set([findFirstFailure, describeDisk]);
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
    for (const find of untold) {
      const found = await unlessAway<string | null>(find(store, progress));
      if (!('seen' in found) || found.seen === null) continue;
      viewer.note(found.seen);
      untold.delete(find);
    }
    if (isOver(progress.state)) return;
  }
}

/** First recorded failure of an attempt, with the line that threw; null until there is one. */
async function findFirstFailure(store: Store, { state, steps }: RunProgress): Promise<string | null> {
  if (state === null) return null;
  const evaluation = state.evals.find(({ failed }) => failed > 0);
  const step = steps.find(({ failedAttempts }) => failedAttempts > 0);
  const parts =
    evaluation === undefined ? await readStep(store, state, step) : await readEvaluation(store, state, evaluation);
  for (const { attempts, timesKey } of parts) {
    const failed = attempts.find(({ failure }) => failure !== null);
    if (failed)
      return `an attempt failed: ${failed.failure?.message.split('\n')[0]}${await placeOf(store, timesKey, failed)}`;
  }
  return null;
}

interface Played {
  readonly attempts: readonly AttemptRecord[];
  readonly timesKey: string;
}

async function readEvaluation(store: Store, { run, lineage }: RunState, { step }: EvalResult): Promise<Played[]> {
  const place = { run, branch: branchOfStep(lineage, step), step };
  const attempts = (await readEvalRollouts(store, place))?.attempts ?? [];
  return [{ attempts, timesKey: evalTimesKey(place) }];
}

async function readStep(store: Store, { run, lineage }: RunState, summary?: StepSummary): Promise<Played[]> {
  if (summary === undefined) return [];
  const place = { run, branch: branchOfStep(lineage, summary.step), step: summary.step };
  const groups = await readGroups(store, place);
  return groups.map(({ group, rollouts }) => ({
    attempts: rollouts.attempts,
    timesKey: groupTimesKey({ ...place, group }),
  }));
}

async function placeOf(store: Store, timesKey: string, { attempt }: AttemptRecord): Promise<string> {
  const times = await readStored(store, timesKey, TimesFileSchema);
  const at = times?.attemptTimes?.[attempt]?.thrownAt;
  return at === undefined ? '' : ` (${at})`;
}
