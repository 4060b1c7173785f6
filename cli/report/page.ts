/** The report: one HTML file that holds all it needs and may fetch nothing. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { formatNumber, metricLabel, sortMetrics } from '../format.ts';
import { planCharts } from './charts.ts';
import type { ReportData } from './data.ts';
import { embedJson, markup, trusted } from './html.ts';
import type { Html } from './html.ts';
import { renderSummary } from './summary.ts';

export function renderReport(data: ReportData): string {
  const style = ['uplot/dist/uPlot.min.css'].map(readPackage).join('\n') + readAsset('report.css');
  const scripts = [readPackage('uplot/dist/uPlot.iife.min.js'), readAsset('report.js')];
  const page = { charts: planCharts(data.steps, data.state.evals), episodes: data.episodes };
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${contentPolicy(style, scripts)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${data.state.run} · Temper</title>
${inline('style', style)}
</head>
<body>
<main>
${renderSummary(data)}
<h2>Curves</h2>
<div id="charts" class="charts"></div>
<h2>Steps</h2>
${stepTable(data)}
<h2>Episodes</h2>
<p class="note">Calls of an attempt stand by the length of their prompts; of equal ones the store does not say which came first.</p>
<div id="picker" class="picker"></div>
<div id="episodes"></div>
${footer(data)}
</main>
<script type="application/json" id="data">${embedJson(page)}</script>
${scripts.map((script) => inline('script', script))}
</body>
</html>
`.html;
}

/** To the byte what the policy's hashes are of: a space more, and the browser refuses it. */
function inline(tag: 'style' | 'script', source: string): Html {
  return trusted(`<${tag}>${source}</${tag}>`);
}

/** No network, no frame, no form; of scripts and styles only these very bytes. */
function contentPolicy(style: string, scripts: readonly string[]): string {
  return [
    "default-src 'none'",
    `script-src ${scripts.map(sourceHash).join(' ')}`,
    `style-src ${sourceHash(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

function sourceHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

function readAsset(name: string): string {
  return readFileSync(new URL(`browser/${name}`, import.meta.url), 'utf8');
}

function readPackage(path: string): string {
  return readFileSync(createRequire(import.meta.url).resolve(path), 'utf8');
}

function stepTable({ steps }: ReportData): Html {
  if (steps.length === 0) return markup`<p class="dim">No step is finished yet.</p>`;
  const metrics = sortMetrics(new Set(steps.flatMap((step) => Object.keys(step.metrics))));
  const train = [...new Set(steps.flatMap((step) => Object.keys(step.train)))].filter((name) =>
    TRAIN_COLUMNS.includes(name),
  );
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

const TRAIN_COLUMNS: readonly string[] = ['entropy', 'gradNorm', 'logprobK3'];

function footer({ leftOut, storeUri, version, config }: ReportData): Html {
  return markup`<footer>
    ${leftOut.map((sentence) => markup`<p>${sentence}</p>`)}
    <p>Everything, lossless, is in the store: <code>${storeUri}</code></p>
    ${
      config === null
        ? null
        : markup`<details>
            <summary>configuration</summary>
            <pre>${JSON.stringify(config, null, 2)}</pre>
          </details>`
    }
    <p>Made by Temper ${version}. This file is complete in itself and loads nothing.</p>
  </footer>`;
}
