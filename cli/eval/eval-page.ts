/** Page of `temper eval`: models as bars with intervals, and their attempts at the same scenarios side by side. */
import { planMeasures, type EvalSummary, type Measure, type Outcome } from './summarise.ts';
import { formatNumber } from '../../core/reports/format.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { AttemptView, GroupView } from '../../views/api/attempt-views.ts';
import type { AttemptSet } from '../../views/api/report-page.ts';
import { clipText } from '../../views/attempts/messages.ts';
import { NO_NEIGHBOURS } from '../../views/attempts/place.ts';
import { NO_VERDICT } from '../../views/attempts/verdict.ts';
import { viewAttempt } from '../../views/attempts/view-attempt.ts';
import { attemptRows } from '../../views/rows/attempt-row.ts';
import type { Estimate } from '../../core/numbers/statistics.ts';
import { markup, type Html } from '../pages/html.ts';
import { BOUNDS, GROUP_BOUNDS, renderPage } from '../pages/offline-page.ts';

export interface EvalReport {
  readonly summary: EvalSummary;
  readonly outcomes: readonly Outcome[];
  readonly scenarioIds: readonly string[];
  readonly version: string;
}

export function renderEvalReport({ summary, outcomes, scenarioIds, version }: EvalReport): Promise<string> {
  const { agent, scenarios, models, notes } = summary;
  const measures = planMeasures(summary);
  const names = models.map(({ model }) => model);
  return renderPage({
    title: `${agent}, ${names.join(' · ')}`,
    data: { charts: [], attemptSets: compareAttempts(outcomes, scenarioIds) },
    body: markup`<header class="masthead">
      <h1>${agent}</h1>
      <span class="dim">${scenarios} scenarios, each played once by every model; lines are 95 % intervals</span>
    </header>
    <div class="notes">${[...notes, ...troubles(summary)].map((note) => markup`<p class="note">${note}</p>`)}</div>
    <h2>Models</h2>
    <div class="charts">${measures.map((measure) => renderBars(measure, names))}</div>
    <h2>Numbers</h2>
    ${table(measures, summary)}
    <h2>Attempts</h2>
    <div id="attempts"></div>
    <footer><p>Made by Temper ${version}. This file is self-contained and loads nothing from the network.</p></footer>`,
  });
}

function troubles({ models }: EvalSummary): string[] {
  return models.flatMap(({ model, failed, attempts, failures, error }) => [
    ...(failed > 0 ? [`${failed} of ${attempts} attempts of ${model} failed, the first with: ${failures[0]}`] : []),
    ...(error === null ? [] : [`${model} was not evaluated: ${error}`]),
  ]);
}

const BAR = { left: 150, width: 250, height: 15, gap: 8, right: 70 } as const;
const LONGEST_NAME = 24;

/** Drawn with attributes: the page allows no inline styles. */
function renderBars({ label, values, isShare }: Measure, names: readonly string[]): Html {
  const [from, to] = isShare ? [0, 1] : rangeOf(values);
  const x = (value: number) =>
    Math.round(BAR.left + (BAR.width * (Math.min(to, Math.max(from, value)) - from)) / (to - from));
  const height = names.length * (BAR.height + BAR.gap);
  const rows = names.map((name, index) => {
    const y = index * (BAR.height + BAR.gap);
    const value = values[index] ?? null;
    return markup`<text x="0" y="${y + BAR.height - 3}">${shorten(name)}</text>
      ${value === null ? null : renderBar(value, { x, y, isFirst: index === 0 })}`;
  });
  return markup`<section class="card chart"><h3>${label}</h3>
    <svg class="bars" viewBox="0 0 ${BAR.left + BAR.width + BAR.right} ${height}" role="img" aria-label="${label} by model">${rows}</svg>
  </section>`;
}

interface Place {
  readonly x: (value: number) => number;
  readonly y: number;
  readonly isFirst: boolean;
}

function renderBar({ mean, low, high }: Estimate, { x, y, isFirst }: Place): Html {
  const middle = y + BAR.height / 2;
  const [left, right] = [Math.min(x(0), x(mean)), Math.max(x(0), x(mean))];
  const className = isFirst ? 'base' : 'bar';
  return markup`<rect class="${className}" x="${left}" y="${y}" width="${Math.max(1, right - left)}" height="${BAR.height}" rx="3" />
    <line x1="${x(low)}" x2="${x(high)}" y1="${middle}" y2="${middle}" />
    <text x="${BAR.left + BAR.width + 8}" y="${y + BAR.height - 3}">${formatNumber(mean)}</text>`;
}

/** Range that includes zero and all finite intervals; a single attempt has none. */
function rangeOf(values: readonly (Estimate | null)[]): [number, number] {
  const ends = values.flatMap((value) => (value === null ? [] : [value.low, value.mean, value.high]));
  const finite = [0, ...ends.filter(Number.isFinite)];
  const [from, to] = [Math.min(...finite), Math.max(...finite)];
  return from === to ? [0, 1] : [from, to];
}

function shorten(name: string): string {
  return name.length <= LONGEST_NAME ? name : `…${name.slice(1 - LONGEST_NAME)}`;
}

function table(measures: readonly Measure[], { models }: EvalSummary): Html {
  const cell = (value: Estimate | null) =>
    value === null
      ? markup`<td>–</td>`
      : markup`<td>${formatNumber(value.mean)} <span class="dim">${formatNumber(value.low)} to ${formatNumber(value.high)}</span></td>`;
  return markup`<div class="card scroll" tabindex="0"><table>
<thead><tr><th></th>${models.map(({ model }) => markup`<th>${model}</th>`)}</tr></thead>
<tbody>${measures.map(({ label, values }) => markup`<tr><td>${label}</td>${values.map(cell)}</tr>\n`)}
<tr><td>attempts, failed</td>${models.map(({ attempts, failed }) => markup`<td>${attempts}, ${failed}</td>`)}</tr></tbody>
</table></div>`;
}

/** Groups of attempts: one scenario, all models. */
function compareAttempts(outcomes: readonly Outcome[], scenarioIds: readonly string[]): AttemptSet[] {
  const played = outcomes.flatMap(({ model, played: games }) => (games === null ? [] : [{ model, games }]));
  if (played.length === 0) return [];
  const shown = scenarioIds.slice(0, BOUNDS.evalGames);
  const groups: GroupView[] = [];
  let room: number = BOUNDS.total;
  for (const [index, id] of shown.entries()) {
    const attempts = played.flatMap(({ model, games }) => {
      const record = games.attempts[index];
      return record === undefined ? [] : [viewPlayed(record, model)];
    });
    const group = compared(clipText(id, 200), attempts);
    room -= JSON.stringify(group).length;
    if (room > 0) groups.push(group);
  }
  const leftOut = groups.length < scenarioIds.length ? `${groups.length} of ${scenarioIds.length} are shown` : null;
  return [{ kind: 'eval', step: 0, label: 'held-out scenarios', groups, leftOut }];
}

/** Belongs to no run: it has no place in a store. */
function compared(id: string, attempts: readonly AttemptView[]): GroupView {
  const none = { scenarioValue: null, judge: null, comparisons: 0, leftOut: 0, neighbours: NO_NEIGHBOURS };
  return { run: '', id, title: id, row: null, scenario: id, attempts, ...none };
}

function viewPlayed(record: AttemptRecord, model: string): AttemptView {
  const place = { branch: 0, step: 0 };
  const files = { place, group: null, judged: null, times: null, use: 'eval' } as const;
  const [row] = attemptRows({ ...files, rollouts: { header: {}, attempts: [record] } });
  const facts = {
    times: null,
    givenRows: [],
    adapterSha256: null,
    policy: null,
    neighbours: NO_NEIGHBOURS,
    ...NO_VERDICT,
  };
  return viewAttempt(record, { ...facts, row: row!, title: model }, GROUP_BOUNDS);
}
