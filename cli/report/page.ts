/** A run's report. */
import { formatNumber, metricLabel, sortMetrics } from '../../core/reports/format.ts';
import { agreementCharts } from '../../views/charts/agreement.ts';
import type { Section } from '../../views/charts/chart.ts';
import { findConstants, planCharts } from '../../views/charts/charts.ts';
import { metricWords, chooseStepMetrics } from '../../views/charts/metric-words.ts';
import { markup, type Html } from '../pages/html.ts';
import { renderPage } from '../pages/offline-page.ts';
import { renderSummary, type ReportData } from './summary.ts';

export function renderReport(data: ReportData): Promise<string> {
  const charts = [...planCharts(data.steps, data.state.evals), ...agreementCharts(data.agreement)];
  return renderPage({
    title: data.state.run,
    data: { charts, attemptSets: data.attemptSets },
    body: markup`${renderSummary(data)}
<h2>Curves</h2>
${renderCurves(new Set(charts.map(({ section }) => section)), data)}
<h2>Steps</h2>
${stepTable(data)}
<h2>Attempts</h2>
<p class="note">The calls of an attempt are listed in the order in which it made them.</p>
<div id="attempts"></div>
${footer(data)}`,
  });
}

const HEADINGS: readonly [Section, string][] = [
  ['outcomes', 'Reward and outcomes'],
  ['policy', 'Policy'],
  ['mismatch', 'Sampler and trainer'],
  ['attempts', 'Attempts and tokens'],
  ['time', 'Time'],
];

/** Containers of charts, which the page's script fills by section. */
function renderCurves(sections: ReadonlySet<Section>, { steps }: ReportData): Html {
  const place = (section: Section) => markup`<div class="charts" data-section="${section}"></div>`;
  const shown = HEADINGS.filter(([section]) => sections.has(section));
  const constant = findConstants(steps).map(
    ({ name, value }) => `${name} ${Number.isInteger(value) ? value : formatNumber(value)}`,
  );
  return markup`${shown.map(([section, heading]) => markup`<h3 class="part">${heading}</h3>\n${place(section)}\n`)}
${sections.has('more') ? markup`<details class="part"><summary>More metrics of the trainer</summary>${place('more')}</details>` : null}
${constant.length === 0 ? null : markup`<p class="note part">Not drawn, because they are the same in all steps: ${constant.join(' · ')}</p>`}`;
}

function stepTable({ steps }: ReportData): Html {
  if (steps.length === 0) return markup`<p class="dim">No step is finished yet.</p>`;
  const metrics = sortMetrics(new Set(steps.flatMap((step) => Object.keys(step.metrics))));
  const train = chooseStepMetrics(steps);
  const heads = [
    'step',
    'reward',
    ...metrics.map(metricLabel),
    ...train.map(metricWords),
    'groups',
    'replaced',
    'failed',
    'tokens',
    'seconds',
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
    formatNumber(step.seconds['step']),
    step.learningRate.toExponential(2),
    step.adapterSha256.slice(0, 12),
  ]);
  return markup`<div class="card scroll" tabindex="0"><table>
<thead><tr>${heads.map((head) => markup`<th>${head}</th>`)}</tr></thead>
<tbody>${rows.map((row) => markup`<tr>${row.map((cell) => markup`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table></div>`;
}

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
