/** Progress as plain lines, for pipes and logs: pure text, one line for each thing that happened. */
import type { EvalResult, RunState, StepSummary } from '../../core/contract.ts';
import { describeUnused, isSkipped } from '../../core/learning-signal.ts';
import { describeLineage } from '../../core/lineage.ts';
import { warnOfLastStep } from '../../core/training-warnings.ts';
import type { RunProgress } from './follow-run.ts';
import { describeTrainingBriefly } from './training-text.ts';
import { describeMetrics, formatDuration, formatNumber, metricLabel, plural, sortMetrics } from '../terminal/format.ts';

/** Of a judge a line says what it cost; the rest stands in the report. */
const JUDGE_COUNTS = new Set(['judgeCalls', 'judgeCached', 'judgeTokens']);

/** `step 12/150  reward 0.431  win 0.610 · illegal 0.031  loss 0.012 · entropy 1.102 · logprobK3 1.0e-12  0.9 s` */
function stepLine(summary: StepSummary, steps: number): string {
  if (summary.examples !== undefined) return supervisedLine(summary, steps);
  const width = String(steps).length;
  const names = Object.keys(summary.metrics).filter((name) => !JUDGE_COUNTS.has(name));
  const metrics = sortMetrics(names).map((name) => `${metricLabel(name)} ${formatNumber(summary.metrics[name])}`);
  const oneSided = summary.train['oneSidedGroups'] ?? 0;
  const notes = [
    isSkipped(summary) ? `skipped: ${describeUnused(summary.unused)}` : null,
    oneSided > 0 ? `${plural(oneSided, 'group')} one-sided (truncated attempts left out)` : null,
    summary.replacedGroups > 0 ? `${plural(summary.replacedGroups, 'group')} replaced` : null,
    summary.failedAttempts > 0 ? `${plural(summary.failedAttempts, 'attempt')} failed` : null,
  ].filter((note) => note !== null);
  return [
    `step ${String(summary.step).padStart(width)}/${steps}`,
    `reward ${formatNumber(summary.reward)}`,
    metrics.join(' · '),
    describeTrainingBriefly(summary),
    formatDuration(stepSeconds(summary)),
    ...notes,
  ]
    .filter((part) => part !== '')
    .join('  ');
}

/** `step 12/150  loss 0.431  held-out loss 0.512  16 examples  0.9 s` */
function supervisedLine(summary: StepSummary, steps: number): string {
  const { loss, heldOutLoss, overlongExamples = 0 } = summary.train;
  const held = heldOutLoss === undefined ? [] : [`held-out loss ${formatNumber(heldOutLoss)}`];
  return [
    `step ${String(summary.step).padStart(String(steps).length)}/${steps}`,
    `loss ${formatNumber(loss ?? null)}`,
    ...held,
    plural(summary.examples ?? 0, 'example'),
    formatDuration(stepSeconds(summary)),
    ...(overlongExamples ? [`${overlongExamples} above the limit of tokens`] : []),
  ].join('  ');
}

function warningLines(steps: readonly StepSummary[], index: number): string[] {
  return warnOfLastStep(steps.slice(0, index + 1)).map(({ text }) => `warning: ${text}`);
}

/** A step's wall time: what the run measured as `step`. */
function stepSeconds({ seconds }: StepSummary): number {
  return seconds['step'] ?? 0;
}

function evalLine(evaluation: EvalResult): string {
  const failed = evaluation.failed > 0 ? ` (${evaluation.failed} failed)` : '';
  const games = `${plural(evaluation.attempts, 'held-out scenario')}${failed}`;
  return `eval after step ${evaluation.step}  ${describeMetrics(evaluation.reward, evaluation.metrics)}  ${games}`;
}

/** How far a follower has told a run: step n is told at n, the evaluation after it at n + ½; on another branch anew. */
export interface Told {
  readonly branch: number;
  readonly at: number;
}

export const NOTHING_TOLD: Told = { branch: 0, at: -1 };

/** What has happened since, in order, and never a step twice: a run that is recovered tells its early steps to its store again. */
export function linesSince(before: Told, { state, steps }: RunProgress): { lines: string[]; told: Told } {
  if (state === null) return { lines: [], told: before };
  const { line, told } = goBack(before, state);
  const lastStep = steps.at(-1)?.step ?? 0;
  const events = [
    ...steps.map((summary, index) => ({
      at: summary.step,
      lines: () => [stepLine(summary, state.steps), ...warningLines(steps, index)],
    })),
    // The two files are read one after the other: an evaluation waits for its step.
    ...state.evals
      .filter(({ step }) => step <= lastStep)
      .map((each) => ({ at: each.step + 0.5, lines: () => [evalLine(each)] })),
  ];
  const fresh = events.filter(({ at }) => at > told.at).toSorted((a, b) => a.at - b.at);
  const lines = fresh.flatMap((event) => event.lines());
  return { lines: line === null ? lines : [line, ...lines], told: { ...told, at: fresh.at(-1)?.at ?? told.at } };
}

/** After a rollback the steps that follow are told again: they are others. */
function goBack(told: Told, { run, branch, lineage }: RunState): { line: string | null; told: Told } {
  const newest = lineage.at(-1);
  if (newest === undefined || branch === told.branch) return { line: null, told };
  const at = newest.fromStep + 0.5;
  if (told.at <= at) return { line: null, told: { branch, at: told.at } };
  return { line: `${run} went back to step ${newest.fromStep}: ${describeLineage(lineage)}`, told: { branch, at } };
}

/** What was told before this follower came, and the line under which it joins; null for a run that has just begun. */
export function joinRun(progress: RunProgress): { line: string | null; told: Told } {
  const { state } = progress;
  const { told } = linesSince(NOTHING_TOLD, progress);
  if (state === null || told.at < 0) return { line: null, told: NOTHING_TOLD };
  const line = `${state.run} continues after step ${Math.floor(told.at)}/${state.steps}, reward ${formatNumber(state.reward)}`;
  return { line, told };
}
