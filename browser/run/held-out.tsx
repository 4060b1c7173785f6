/** The result on held-out scenarios, before everything else: what a run has reached. */
import { Fragment } from 'preact';
import { formatGroupId } from '../../core/names/attempt-id.ts';
import type { RunState } from '../../core/contract/contract.ts';
import { describeHeldOut, formatNumber, heldOutHeading } from '../../core/reports/format.ts';
import { branchOfStep } from '../../core/names/lineage.ts';
import type { CurveView } from '../../views/api/run-views.ts';
import {
  findHeldOut,
  type HeldOutNumber,
  findHeldOutLoss,
  LOSS_HEADING,
  lossNote,
} from '../../views/charts/held-out.ts';
import { pathTo } from '../location.ts';
import { IntervalBars } from '../parts/bars.tsx';

interface HeldOutProps {
  readonly state: RunState | null;
  readonly curve: CurveView | null;
}

export function HeldOut({ state, curve }: HeldOutProps) {
  const result = state === null ? null : findHeldOut(state, curve?.evalRewards);
  if (state === null || result === null) return curve === null ? null : <HeldOutLoss curve={curve} />;
  const numbers = [result.before, result.after].filter((number) => number !== null);
  const newest = numbers.at(-1)!;
  return (
    <section class="card outcome" aria-label="Held-out result">
      <h2>{heldOutHeading(result.label)}</h2>
      <div class="from-to">
        {numbers.map((number) => (
          <Fragment key={number.evaluation.step}>
            <Figure of={number} state={state} className={number === newest ? '' : 'before'} />
            {number !== newest && <span class="arrow">→</span>}
          </Fragment>
        ))}
      </div>
      {result.label !== 'reward' && (
        <IntervalBars
          what={`${result.label}, with 95 % intervals`}
          range={[0, 1]}
          bars={numbers.map(({ evaluation: { step }, value, interval }) => ({
            label: step === 0 ? 'before' : `step ${step}`,
            value,
            interval,
          }))}
        />
      )}
      <p class="note">{notesOn(newest, state).join('; ')}</p>
    </section>
  );
}

/** Of a supervised run, which plays no scenario. */
function HeldOutLoss({ curve: { steps } }: { curve: CurveView }) {
  const loss = findHeldOutLoss(steps);
  if (loss === null) return null;
  return (
    <section class="card outcome" aria-label="Held-out result">
      <h2>{LOSS_HEADING}</h2>
      <div class="from-to">
        <span class="before">{formatNumber(loss.before)}</span>
        <span class="arrow">→</span>
        <span>{formatNumber(loss.after)}</span>
      </div>
      <p class="note">{lossNote(loss)}</p>
    </section>
  );
}

function notesOn({ evaluation, interval }: HeldOutNumber, { step }: RunState): string[] {
  return [
    describeHeldOut(evaluation),
    ...(interval === null ? [] : ['ranges are 95 % intervals']),
    ...(evaluation.step < step ? [`the run is at step ${step}`] : []),
  ];
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
