/** Progress as plain lines, for pipes and logs: pure text, one line for each thing that happened. */
import type { EvalResult, RunState, StepSummary } from '../../core/contract.ts';
import { describeMetrics, formatDuration, formatNumber, metricLabel, plural, sortMetrics } from '../format.ts';

/** `step 12/150  reward 0.431  win 0.610 · illegal 0.031  0.9 s` */
export function stepLine(summary: StepSummary, steps: number): string {
  const width = String(steps).length;
  const metrics = sortMetrics(Object.keys(summary.metrics)).map(
    (name) => `${metricLabel(name)} ${formatNumber(summary.metrics[name])}`,
  );
  const notes = [
    summary.replacedGroups > 0 ? `${plural(summary.replacedGroups, 'group')} replaced` : null,
    summary.failedAttempts > 0 ? `${plural(summary.failedAttempts, 'attempt')} failed` : null,
  ].filter((note) => note !== null);
  return [
    `step ${String(summary.step).padStart(width)}/${steps}`,
    `reward ${formatNumber(summary.reward)}`,
    metrics.join(' · '),
    formatDuration(stepSeconds(summary)),
    ...notes,
  ]
    .filter((part) => part !== '')
    .join('  ');
}

/** A step's wall time: recorded as `total`, else the sum of its phases. */
export function stepSeconds(summary: StepSummary): number {
  const { total } = summary.seconds;
  return total ?? Object.values(summary.seconds).reduce((sum, seconds) => sum + seconds, 0);
}

export function evalLine(evaluation: EvalResult): string {
  const failed = evaluation.failed > 0 ? ` (${evaluation.failed} failed)` : '';
  const games = `${plural(evaluation.attempts, 'held-out scenario')}${failed}`;
  return `eval after step ${evaluation.step}  ${describeMetrics(evaluation.reward, evaluation.metrics)}  ${games}`;
}

/** The line under which a follower joins a run that is under way, or null for one that has just begun. */
export function joinLine(state: RunState): string | null {
  if (state.step === 0) return null;
  return `${state.run} goes on after step ${state.step}/${state.steps}, reward ${formatNumber(state.reward)}`;
}
