/** Head of the report: results and cost. */
import { shortModelName } from '../../core/reports/describe-config.ts';
import type { EvalResult, RunConfig, RunState, StepSummary } from '../../core/contract/contract.ts';
import { describeCosts, sumUsd } from '../../core/rules/costs.ts';
import { formatUsd } from '../../core/rules/judge-spending.ts';
import { findHeldOutLoss, LOSS_HEADING, lossNote, type HeldOutLoss } from '../../views/charts/held-out.ts';
import { describeLineage } from '../../core/names/lineage.ts';
import { policyName } from '../../core/names/policy-name.ts';
import { describeChange } from '../../core/rules/settings.ts';
import {
  formatDuration,
  formatNumber,
  formatSteps,
  headline,
  headlineInterval,
  heldOutHeading,
  metricLabel,
  olderThan,
  plural,
  sortMetrics,
  valueOf,
} from '../../core/reports/format.ts';
import type { ReviewAgreement } from '../../store/records/rewards/review-agreement.ts';
import type { AttemptSet } from '../../views/api/report-page.ts';
import { describeAgreement } from '../../views/charts/agreement.ts';
import type { FoundAdvisory } from '../../views/runs/advisories.ts';
import { markup, type Html } from '../pages/html.ts';

export interface ReportData {
  readonly state: RunState;
  readonly config: RunConfig | null;
  readonly steps: readonly StepSummary[];
  readonly advisories: readonly FoundAdvisory[];
  readonly attemptSets: readonly AttemptSet[];
  /** Sentences that say what was left out. */
  readonly leftOut: readonly string[];
  /** Null unless people review the run. */
  readonly agreement: ReviewAgreement | null;
  readonly storeUri: string;
  readonly version: string;
}

export function renderSummary({ state, steps, config, agreement, advisories }: ReportData): Html {
  const tokens = steps.reduce((sum, step) => sum + step.sampledTokens, 0);
  const attempts = steps.reduce((sum, step) => sum + step.attempts, 0);
  return markup`<header class="masthead">
      <h1>${state.run}</h1>
      <span class="chip ${state.state}">${state.state}</span
      ><span class="dim">${state.agent} on ${shortModelName(state.baseModel)}${config?.parent ? `, started from ${policyName(config.parent)}` : ''}</span>
    </header>
    ${state.failure === null ? null : markup`<p class="card failure">${state.failure}</p>`}
    <div class="summary">
      ${outcome(state, steps)}
      <div class="card tiles">
        ${metricTiles(state)} ${tile(`${state.step} of ${state.steps}`, 'steps')}
        ${tile(formatDuration(state.wallSeconds), 'time')}
        ${tile(attempts.toLocaleString('en'), 'attempts played')} ${tile(tokens.toLocaleString('en'), 'tokens sampled')}
        ${costTile(state)}
        ${state.adapterSha256 === null ? null : markup`<div class="tile"><b class="mono" title="${state.adapterSha256}">${state.adapterSha256.slice(0, 16)}</b><span>adapter, sha256</span></div>`}
      </div>
    </div>
    ${advisories.length === 0 ? null : markup`<section class="advisories" aria-label="Advisories">${advisories.map(renderAdvisory)}</section>`}
    ${agreement === null ? null : markup`<p class="note">${describeAgreement(agreement.all)}</p>`}
    ${renderNotes(steeringNotes(state))}`;
}

/** An advisory as on a run's page (`browser/run/advisories.tsx`), without links: a report has no page of attempts. */
function renderAdvisory({ level, text, remedy, steps }: FoundAdvisory): Html {
  return markup`<article class="card advisory ${level}">
      <span class="chip ${level === 'alarm' ? 'bad' : 'warn'}">${level}</span>
      <div><h2>${text}</h2><p>${remedy}</p>${steps === null ? null : markup`<p class="dim">${formatSteps(steps)}</p>`}</div>
    </article>`;
}

function costTile({ costs }: RunState): Html | null {
  const text = costs === undefined ? null : describeCosts(costs);
  if (costs === undefined || text === null) return null;
  return markup`<div class="tile"><b title="${text}">$${formatUsd(sumUsd(costs.usd))}</b><span>cost</span></div>`;
}

/** Updates and notes of the run come last: they explain the curve. */
function steeringNotes({ notes, changes, branch, lineage, state, waitingFor }: RunState): string[] {
  const place = describeLineage(lineage);
  return [
    ...notes,
    ...changes.map((each) => `changed: ${describeChange(each, branch)}`),
    ...(place === null ? [] : [`current position: ${place}`]),
    ...(state === 'paused' && waitingFor !== null ? [`waiting for ${waitingFor}`] : []),
  ];
}

const SHOWN_NOTES = 3;

/** Notes of a long run are repetitive: the newest are open, the others folded. */
function renderNotes(notes: readonly string[]): Html {
  const line = (note: string) => markup`<p class="note">${note}</p>`;
  const older = notes.slice(0, -SHOWN_NOTES);
  return markup`<div class="notes">
    ${older.length === 0 ? null : markup`<details><summary>${plural(older.length, 'earlier note')}</summary>${older.map(line)}</details>`}
    ${notes.slice(-SHOWN_NOTES).map(line)}
  </div>`;
}

function outcome(state: RunState, steps: ReportData['steps']): Html {
  const { evalBefore, evalAfter } = state;
  const loss = findHeldOutLoss(steps);
  if (evalBefore === null && loss !== null) return lossOutcome(loss);
  if (evalBefore === null) return markup`<section class="card outcome"><p class="dim">Not evaluated yet.</p></section>`;
  const before = headline(evalBefore);
  const after = evalAfter === null ? null : headline(evalAfter);
  return markup`<section class="card outcome">
    <h2>${heldOutHeading(before.label)}${evalAfter === null ? '' : olderThan(state.step, evalAfter)}</h2>
    <div class="from-to">
      <span class="before">${formatNumber(before.value)}</span><span class="arrow">→</span
      ><span>${after === null ? '…' : formatNumber(after.value)}</span>
    </div>
    ${before.label === 'reward' ? null : intervals([evalBefore, evalAfter])}
    <p class="note">${describeCounts(evalBefore)}</p>
  </section>`;
}

function lossOutcome(loss: HeldOutLoss): Html {
  return markup`<section class="card outcome">
    <h2>${LOSS_HEADING}</h2>
    <div class="from-to">
      <span class="before">${formatNumber(loss.before)}</span><span class="arrow">→</span><span>${formatNumber(loss.after)}</span>
    </div>
    <p class="note">${lossNote(loss)}</p>
  </section>`;
}

function describeCounts({ attempts, scenarios = attempts, failed }: EvalResult): string {
  const note = failed > 0 ? `; ${plural(failed, 'attempt')} failed before training` : '';
  return `the same ${plural(scenarios, 'scenario')} before and after${note}; lines are 95 % intervals`;
}

const BAR = { width: 320, height: 13, gap: 9, label: 46 } as const;

/** Shares as bars from 0 to 1 with confidence intervals. Drawn with attributes, because the page allows no inline styles. */
function intervals(evaluations: readonly (EvalResult | null)[]): Html {
  const rows = evaluations.flatMap((evaluation, index) => {
    const share = evaluation === null ? null : headline(evaluation).value;
    const interval = evaluation === null ? null : headlineInterval(evaluation);
    if (share === null || interval === null) return [];
    const [low, high] = interval;
    const y = index * (BAR.height + BAR.gap);
    const x = (value: number) => String(Math.round(BAR.label + value * BAR.width));
    const middle = String(y + BAR.height / 2);
    return markup`<text x="0" y="${y + BAR.height - 2}">${index === 0 ? 'before' : 'after'}</text>
      <rect class="sunken" x="${BAR.label}" y="${y}" width="${BAR.width}" height="${BAR.height}" rx="3" />
      <rect
        class="${index === 0 ? 'base' : 'bar'}"
        x="${BAR.label}"
        y="${y}"
        width="${Math.round(share * BAR.width)}"
        height="${BAR.height}"
        rx="3"
      />
      <line x1="${x(low)}" x2="${x(high)}" y1="${middle}" y2="${middle}" />`;
  });
  return markup`<svg
    class="bars"
    viewBox="0 0 ${BAR.label + BAR.width} ${2 * BAR.height + BAR.gap}"
    role="img"
    aria-label="before and after, with intervals"
  >
    ${rows}
  </svg>`;
}

function metricTiles({ evalBefore, evalAfter }: RunState): Html[] {
  if (evalBefore === null) return [];
  const names = sortMetrics(Object.keys(evalBefore.metrics)).filter(
    (name) => metricLabel(name) !== headline(evalBefore).label,
  );
  return ['reward', ...names].map((name) =>
    change(metricLabel(name), valueOf(evalBefore, name), evalAfter === null ? null : valueOf(evalAfter, name)),
  );
}

function change(label: string, before: number | null, after: number | null): Html {
  if (after === null) return tile(formatNumber(before), `${label}, held out`);
  return markup`<div class="tile">
    <b>${formatNumber(after)} <span class="change">from ${formatNumber(before)}</span></b
    ><span>${label}, held out</span>
  </div>`;
}

function tile(value: string, label: string): Html {
  return markup`<div class="tile"><b>${value}</b><span>${label}</span></div>`;
}
