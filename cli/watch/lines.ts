/** Progress as plain lines for pipes and logs, one line for each event. */
import type { EvalResult, RunState, StepSummary } from '../../core/contract/contract.ts';
import { sumUsd } from '../../core/rules/costs.ts';
import { formatUsd } from '../../core/rules/judge-spending.ts';
import { describeUnused, isSkipped } from '../../core/reports/learning-signal.ts';
import { describeLineage } from '../../core/names/lineage.ts';
import { warnOfLastEvaluation, warnOfLastStep, type TrainingWarning } from '../../core/reports/training-warnings.ts';
import type { RunProgress } from './follow-run.ts';
import { describeTrainingBriefly, fillRows } from './training-text.ts';
import {
  describeHeldOut,
  describeMetrics,
  formatDuration,
  formatNumber,
  metricLabel,
  plural,
  sortMetrics,
} from '../../core/reports/format.ts';

/** Judge metrics that a line leaves out, except the cost; the report has them. */
const JUDGE_COUNTS = new Set(['judgeCalls', 'judgeCached', 'judgeTokens']);

/** Columns of a step's line; only what is noted of unusual steps goes beyond them. */
const WIDTH = 100;

/** `step 12/150  reward 0.431  win 0.610 · illegal 0.031  entropy 1.102 · loss 0.012  0.9 s` */
function stepLine(summary: StepSummary, steps: number): string {
  if (summary.examples !== undefined) return supervisedLine(summary, steps);
  const width = String(steps).length;
  const names = Object.keys(summary.metrics).filter((name) => !JUDGE_COUNTS.has(name));
  const metrics = sortMetrics(names).map((name) => `${metricLabel(name)} ${formatNumber(summary.metrics[name])}`);
  const oneSided = summary.train['oneSidedGroups'] ?? 0;
  const unusable = summary.train['unusableGroups'] ?? 0;
  const notes = [
    isSkipped(summary) ? `skipped: ${describeUnused(summary.unused)}` : null,
    oneSided > 0 ? `${plural(oneSided, 'group')} one-sided (truncated attempts left out)` : null,
    unusable > 0 ? `${plural(unusable, 'group')} left out (rewards too far apart)` : null,
    summary.replacedGroups > 0 ? `${plural(summary.replacedGroups, 'group')} replaced` : null,
    summary.failedAttempts > 0 ? `${plural(summary.failedAttempts, 'attempt')} failed` : null,
  ].filter((note) => note !== null);
  const start = [`step ${String(summary.step).padStart(width)}/${steps}`, `reward ${formatNumber(summary.reward)}`];
  const end = [formatDuration(stepSeconds(summary)), describeStepCost(summary)];
  const line = (...middle: readonly string[]) => joinParts([...start, ...middle, ...end]);
  const training = describeTrainingBriefly(summary);
  // The first number of training is worth more than the last metrics.
  const [shown = ''] = fillRows(metrics, WIDTH - line(' ', ...training.slice(0, 1)).length, 1);
  const [told = ''] = fillRows(training, WIDTH - line(shown, ' ').length, 1);
  return joinParts([line(shown, told), ...notes]);
}

const joinParts = (parts: readonly string[]): string => parts.filter((part) => part !== '').join('  ');

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

/** `$0.12`; empty if nothing of it has a price. */
function describeStepCost({ costs }: StepSummary): string {
  return costs === undefined || Object.keys(costs.usd).length === 0 ? '' : `$${formatUsd(sumUsd(costs.usd))}`;
}

function warningLines(warnings: readonly Pick<TrainingWarning, 'text'>[]): string[] {
  return warnings.map(({ text }) => `warning: ${text}`);
}

/** A step's wall time: what the run measured as `step`. */
function stepSeconds({ seconds }: StepSummary): number {
  return seconds['step'] ?? 0;
}

/** `before`: the evaluation before it, and `steps` the steps up to it. */
function evalLine(evaluation: EvalResult, before: EvalResult | undefined, steps: readonly StepSummary[]): string {
  const failed = evaluation.failed > 0 ? ` (${evaluation.failed} failed)` : '';
  const games = `${describeHeldOut(evaluation)}${failed}`;
  const line = `eval after step ${evaluation.step}  ${describeMetrics(evaluation.reward, evaluation.metrics)}  ${games}`;
  const between = steps.filter(({ step }) => step > (before?.step ?? 0) && step <= evaluation.step);
  const isSame = before !== undefined && between.length > 0 && between.every(isSkipped);
  return isSame ? `${line}, the same policy as after step ${before.step}` : line;
}

/** Progress that was printed: n after step n, n + ½ after the evaluation that follows it; starts anew on another branch. */
export interface Told {
  readonly branch: number;
  readonly at: number;
}

export const NOTHING_TOLD: Told = { branch: 0, at: -1 };

/** New lines in order. No step is printed twice, though a recovered run writes its early steps to the store again. */
export function linesSince(before: Told, { state, steps }: RunProgress): { lines: string[]; told: Told } {
  if (state === null) return { lines: [], told: before };
  const { line, told } = goBack(before, state);
  const lastStep = steps.at(-1)?.step ?? 0;
  const events = [
    ...steps.map((summary, index) => ({
      at: summary.step,
      lines: () => {
        const known = state.evals.filter(({ step }) => step < summary.step);
        return [stepLine(summary, state.steps), ...warningLines(warnOfLastStep(steps.slice(0, index + 1), known))];
      },
    })),
    // State and steps are read separately: an evaluation waits for its step.
    ...state.evals
      .filter(({ step }) => step <= lastStep)
      .map((each, index, evals) => ({
        at: each.step + 0.5,
        lines: () => [
          evalLine(each, evals[index - 1], steps),
          ...warningLines(warnOfLastEvaluation(evals.slice(0, index + 1))),
        ],
      })),
  ];
  const fresh = events.filter(({ at }) => at > told.at).toSorted((a, b) => a.at - b.at);
  const lines = fresh.flatMap((event) => event.lines());
  return { lines: line === null ? lines : [line, ...lines], told: { ...told, at: fresh.at(-1)?.at ?? told.at } };
}

/** Steps after a rollback are printed again: they are new ones. */
function goBack(told: Told, { run, branch, lineage }: RunState): { line: string | null; told: Told } {
  const newest = lineage.at(-1);
  if (newest === undefined || branch === told.branch) return { line: null, told };
  const at = newest.fromStep + 0.5;
  if (told.at <= at) return { line: null, told: { branch, at: told.at } };
  return { line: `${run} went back to step ${newest.fromStep}: ${describeLineage(lineage)}`, told: { branch, at } };
}

/** Progress from before this command, and the line that says so; null for a new run. */
export function joinRun(progress: RunProgress): { line: string | null; told: Told } {
  const { state } = progress;
  const { told } = linesSince(NOTHING_TOLD, progress);
  if (state === null || told.at < 0) return { line: null, told: NOTHING_TOLD };
  const line = `${state.run} continues after step ${Math.floor(told.at)}/${state.steps}, reward ${formatNumber(state.reward)}`;
  return { line, told };
}
