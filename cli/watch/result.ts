/** Last lines of a command that played a run: how the run ended. */
import type { RunState } from '../../core/contract/contract.ts';
import { describeCosts } from '../../core/rules/costs.ts';
import { describeHeldOutLoss, findHeldOutLoss } from '../../views/charts/held-out.ts';
import { ENDED_EARLY, hintIfStalled } from '../../core/reports/learning-signal.ts';
import type { RunProgress } from './follow-run.ts';
import {
  describeHeldOutChange,
  formatDuration,
  formatNumber,
  metricLabel,
  olderThan,
  plural,
  sortMetrics,
  valueOf,
} from '../../core/reports/format.ts';

/**
 * Table of both evaluations, the adapter, and the headline at the end, where users look. A hint follows if the reward did
 * not improve.
 */
export function resultLines({ state, steps }: RunProgress, reportPath: string | null = null): string[] {
  if (state === null) return [];
  const { evalBefore } = state;
  return [
    `${state.run}: ${state.state} after ${plural(state.step, 'step')} of ${state.steps} in ${formatDuration(state.wallSeconds)}`,
    ...evalTable(state),
    ...costLine(state),
    ...(state.adapterSha256 === null ? [] : [`adapter  ${state.adapterSha256}`]),
    ...(reportPath === null ? [] : [`report   ${reportPath}`]),
    ...heldOutLine(steps),
    ...(evalBefore === null ? [] : [describeHeldOutChange(evalBefore, state.evalAfter, state.step)]),
    ...earlyEndLine(state),
    ...hintLine(state, steps),
  ];
}

function costLine({ costs }: RunState): string[] {
  const text = costs === undefined ? null : describeCosts(costs);
  return text === null ? [] : [`cost     ${text}`];
}

function heldOutLine(steps: RunProgress['steps']): string[] {
  const found = findHeldOutLoss(steps);
  return found === null ? [] : [`held-out loss  ${describeHeldOutLoss(found)}`];
}

/** Why a run ended by itself before its last step. */
function earlyEndLine({ state, notes }: RunState): string[] {
  const note = state === 'stopped' ? notes.findLast((each) => each.startsWith(ENDED_EARLY)) : undefined;
  return note === undefined ? [] : [note];
}

/** A failed run has a remedy in its failure message. */
function hintLine(state: RunState, steps: RunProgress['steps']): string[] {
  const hint = state.state === 'failed' ? null : hintIfStalled(state, steps);
  return hint === null ? [] : [`hint: ${hint}`];
}

function evalTable({ step, evalBefore, evalAfter }: RunState): string[] {
  if (evalBefore === null || evalAfter === null) return [];
  const names = ['reward', ...sortMetrics(Object.keys(evalAfter.metrics))];
  const width = Math.max(...names.map((name) => name.length)) + 2;
  return [
    `${''.padEnd(width)}  before   after${olderThan(step, evalAfter)}`,
    ...names.map((name) => {
      const [before, after] = [evalBefore, evalAfter].map((evaluation) =>
        formatNumber(valueOf(evaluation, name)).padStart(6),
      );
      return `  ${metricLabel(name).padEnd(width)}${before}  ${after}`;
    }),
  ];
}
