/** A run's report. */
import { formatNumber, metricLabel, sortMetrics } from '../terminal/format.ts';
import { planCharts } from './charts.ts';
import type { ReportData } from './data.ts';
import { markup, type Html } from './html.ts';
import { renderPage } from './shell.ts';
import { renderSummary } from './summary.ts';

export function renderReport(data: ReportData): string {
  return renderPage({
    title: data.state.run,
    data: { charts: planCharts(data.steps, data.state.evals), attemptSets: data.attemptSets },
    body: markup`${renderSummary(data)}
<h2>Curves</h2>
<div id="charts" class="charts"></div>
<h2>Steps</h2>
${stepTable(data)}
<h2>Attempts</h2>
<p class="note">The calls of an attempt are listed in the order in which it made them.</p>
<div id="picker" class="picker"></div>
<div id="attempts"></div>
${footer(data)}`,
  });
}

function stepTable({ steps }: ReportData): Html {
  if (steps.length === 0) return markup`<p class="dim">No step is finished yet.</p>`;
  const metrics = sortMetrics(new Set(steps.flatMap((step) => Object.keys(step.metrics))));
  const named = new Set(steps.flatMap((step) => Object.keys(step.train)));
  const counted = COUNTER_COLUMNS.filter((name) => steps.some((step) => (step.train[name] ?? 0) > 0));
  const supervised = steps.some(({ examples }) => examples !== undefined) ? EXAMPLE_COLUMNS : [];
  const train = [...[...supervised, ...TRAIN_COLUMNS].filter((name) => named.has(name)), ...counted];
  const heads = [
    'step',
    'reward',
    ...metrics.map(metricLabel),
    ...train,
    'groups',
    'replaced',
    'failed',
    'tokens',
    'learning rate',
    'adapter',
  ];
  const rows = steps.map((step) => [
    String(step.step),
    formatNumber(step.reward),
    ...metrics.map((name) => formatNumber(step.metrics[name])),
    ...train.map((name) => formatNumber(step.train[name])),
    String(step.groups),
    String(step.replacedGroups),
    String(step.failedAttempts),
    String(step.sampledTokens),
    step.learningRate.toExponential(2),
    step.adapterSha256.slice(0, 12),
  ]);
  return markup`<div class="card scroll" tabindex="0"><table>
<thead><tr>${heads.map((head) => markup`<th>${head}</th>`)}</tr></thead>
<tbody>${rows.map((row) => markup`<tr>${row.map((cell) => markup`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table></div>`;
}

/** Of runs with supervised steps. */
const EXAMPLE_COLUMNS: readonly string[] = ['examples', 'loss', 'heldOutLoss'];
const TRAIN_COLUMNS: readonly string[] = ['entropy', 'gradNorm', 'logprobK3'];
/** Shown where there are any. */
const COUNTER_COLUMNS: readonly string[] = ['truncated', 'forks', 'histories', 'rewardedTurns'];

function footer({ leftOut, storeUri, version, config }: ReportData): Html {
  return markup`<footer>
    ${leftOut.map((sentence) => markup`<p>${sentence}</p>`)}
    <p>The complete, lossless data is in the store: <code>${storeUri}</code></p>
    ${
      config === null
        ? null
        : markup`<details>
            <summary>configuration</summary>
            <pre>${JSON.stringify(config, null, 2)}</pre>
          </details>`
    }
    <p>Made by Temper ${version}. This file is self-contained and loads nothing from the network.</p>
  </footer>`;
}
