/** The tables of docs/metrics.md against what is exported, and the dashboard and the alerts against the tables. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ProcessMetrics } from '../../workers/metrics/process-metrics.ts';
import { RUN_METRICS } from '../../workers/metrics/run-families.ts';
import { readPage, ROOT } from './markdown.ts';
import { namesOfPage } from './metric-names.ts';

const PAGE = 'docs/metrics.md';
const METRIC = /\b(?:temper_[a-z0-9_]+|vllm:[a-z0-9_]+|process_[a-z_]+)\b/g;

function familiesOf(): { name: string; type: string; help: string }[] {
  const metrics = new ProcessMetrics();
  onTestFinished(() => metrics.close());
  const ofRuns = RUN_METRICS.map((metric) => ({ ...metric, name: `temper_run_${metric.name}` }));
  return [...ofRuns, ...metrics.families()];
}

test('each metric of a TypeScript worker has its row, with its meaning, marked if it is a histogram', () => {
  const expected = familiesOf().map(({ name, type, help }) => {
    const mark = type === 'histogram' ? 'Histogram: ' : '';
    return `| \`${name}\` | ${mark}${help.replace(/\.$/, '')} |`;
  });
  const page = readPage(PAGE).split('\n');
  expect(expected.filter((row) => !page.includes(row))).toEqual([]);
});

test('names follow Prometheus: counters end with _total, and no name says what its type says', () => {
  for (const { name, type } of familiesOf()) {
    expect(name.endsWith('_total'), name).toBe(type === 'counter');
    expect(name, 'base units').not.toMatch(/_(ms|milliseconds|minutes|usd|count|sum|bucket|gauge)(_|$)/);
  }
});

test('the dashboard and the alerts name metrics that exist', () => {
  const known = new Set([...namesOfPage(PAGE), ...namesOfPage('docs/http-api.md')]);
  for (const file of ['docs/grafana/temper.json', 'docs/prometheus/alerts.yml']) {
    const named = [...readFileSync(join(ROOT, file), 'utf8').matchAll(METRIC)].map(([name]) => name);
    const base = named.map((name) => name.replace(/_(bucket|count|sum)$/, ''));
    expect(base.length, file).toBeGreaterThan(15);
    expect(
      [...new Set(base)].filter((name) => !known.has(name)),
      file,
    ).toEqual([]);
  }
});

test('each alert has its row', () => {
  const rules = readFileSync(join(ROOT, 'docs/prometheus/alerts.yml'), 'utf8');
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const told = [...readPage(PAGE).matchAll(/^\| `(Temper\w+)` \|/gm)].map(([, name]) => name);
  expect(told).toEqual(alerts);
});
