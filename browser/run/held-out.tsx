/** The result on held-out scenarios, before everything else: what a run has reached. */
import { formatGroupId } from '../../core/attempt-id.ts';
import type { RunState } from '../../core/contract.ts';
import { describeHeldOut, formatNumber } from '../../core/format.ts';
import { branchOfStep } from '../../core/lineage.ts';
import type { CurveView } from '../../views/api/run-views.ts';
import { findHeldOut, type HeldOutNumber } from '../../views/charts/held-out.ts';
import { pathTo } from '../location.ts';

interface HeldOutProps {
  readonly state: RunState | null;
  readonly curve: CurveView | null;
}

export function HeldOut({ state, curve }: HeldOutProps) {
  const result = state === null ? null : findHeldOut(state, curve?.evalRewards);
  if (state === null || result === null) return null;
  const { label, before, after } = result;
  const { evaluation } = (after ?? before)!;
  return (
    <section class="card outcome" aria-label="Held-out result">
      <h2>{label === 'reward' ? 'Mean reward' : `Share of ${label}`} on held-out scenarios</h2>
      <div class="from-to">
        {before !== null && <Figure of={before} state={state} className="before" />}
        {before !== null && after !== null && <span class="arrow">→</span>}
        {after !== null && <Figure of={after} state={state} />}
      </div>
      <p class="note">
        {describeHeldOut(evaluation)}
        {(after ?? before)?.interval !== null && '; ranges are 95 % intervals'}
        {evaluation.step < state.step && `; the run is at step ${state.step}`}
      </p>
    </section>
  );
}

function Figure({ of, state, className = '' }: { of: HeldOutNumber; state: RunState; className?: string }) {
  const { evaluation, value, interval } = of;
  const { step } = evaluation;
  const bounds = interval === null ? null : `${formatNumber(interval[0])} to ${formatNumber(interval[1])}`;
  return (
    <a class={className} href={`#${evaluationPath(state, step)}`} title="Open the attempts of this evaluation">
      {formatNumber(value)}
      <small class="note">{step === 0 ? 'before training' : `after step ${step}`}</small>
      {bounds !== null && <small class="note">{bounds}</small>}
    </a>
  );
}

function evaluationPath({ run, lineage }: RunState, step: number): string {
  return pathTo('runs', run, 'groups', formatGroupId({ branch: branchOfStep(lineage, step), step, group: null }));
}
