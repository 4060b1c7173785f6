/** Two to six runs: their curves in one chart, and the settings in which they differ. */
import { useMemo, useState } from 'preact/hooks';
import type { CompareView } from '../../views/api/run-views.ts';
import { compareChart, comparedLabel, comparedMetrics } from '../../views/charts/compare-chart.ts';
import { smoothChart } from '../../views/charts/smooth.ts';
import { useData } from '../data.ts';
import { pathTo, useQuery } from '../location.ts';
import { ChartCard } from '../parts/chart.tsx';
import { PlainTable } from '../parts/plain-table.tsx';
import { Empty, Shown } from '../parts/small.tsx';
import { SmoothingSlider } from '../run/smoothing.tsx';

export function ComparePage() {
  const [query] = useQuery();
  const runs = (query.get('runs') ?? '').split(',').filter((run) => run !== '');
  const isPossible = runs.length >= 2;
  const loaded = useData<CompareView>(isPossible ? `compare?${new URLSearchParams({ runs: runs.join(',') })}` : null);
  return (
    <>
      <div class="page-head">
        <h1>Compare runs</h1>
        <a href="#/" class="button">
          Choose runs
        </a>
      </div>
      {isPossible ? (
        <Shown loaded={loaded} what="the comparison">
          {(view) => <Comparison view={view} />}
        </Shown>
      ) : (
        <Empty title="Choose at least two runs">
          Mark them in the <a href="#/">list of runs</a>.
        </Empty>
      )}
    </>
  );
}

function Comparison({ view }: { view: CompareView }) {
  const [query, setQuery] = useQuery();
  const [weight, setWeight] = useState(0.6);
  const metrics = useMemo(() => comparedMetrics(view.curves), [view]);
  const chosen = (query.get('metrics') ?? '').split(',').filter((name) => metrics.includes(name));
  const shown = chosen.length === 0 ? metrics.slice(0, 1) : chosen;
  const charts = useMemo(
    () => shown.map((name) => smoothChart(compareChart(view.curves, name), weight)),
    [view, shown.join(','), weight],
  );
  const toggle = (name: string): void => {
    const next = shown.includes(name) ? shown.filter((other) => other !== name) : [...shown, name];
    setQuery({ metrics: next.join(',') });
  };
  return (
    <>
      <div class="toolbar">
        <SmoothingSlider weight={weight} onChange={setWeight} />
      </div>
      <fieldset class="metric-picker">
        <legend class="visually-hidden">Metrics</legend>
        {metrics.map((name) => (
          <button key={name} type="button" aria-pressed={shown.includes(name)} onClick={() => toggle(name)}>
            {comparedLabel(name)}
          </button>
        ))}
      </fieldset>
      <h2 class="visually-hidden">Curves</h2>
      <div class="charts">
        {charts.map((chart, at) => (
          <ChartCard key={chart.title} chart={chart} isWide={at === 0} />
        ))}
      </div>
      <h2>Settings that differ</h2>
      <Settings view={view} />
    </>
  );
}

function Settings({ view: { curves, settings } }: { view: CompareView }) {
  if (settings.length === 0) return <Empty title="These runs have the same settings" />;
  return (
    <PlainTable
      label="Settings that differ"
      names="setting"
      columns={curves.map(({ run }) => ({
        key: run,
        head: <a href={`#${pathTo('runs', run)}`}>{run}</a>,
        kind: 'words',
      }))}
      rows={settings.map(({ setting, values }) => ({ key: setting, name: <code>{setting}</code>, cells: values }))}
      isTall
    />
  );
}
