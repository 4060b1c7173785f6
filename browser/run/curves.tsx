/** Curves of a run: at first those that say most, by a button all, in sections. */
import { useMemo, useState, useEffect } from 'preact/hooks';
import { formatNumber, formatSteps, plural } from '../../core/reports/format.ts';
import { REVIEW } from '../../core/rules/external-rewards.ts';
import { agreementCharts, describeAgreement } from '../../views/charts/agreement.ts';
import type { AgreementView, CurveView, RunView } from '../../views/api/run-views.ts';
import { addLeftBranches, type LeftBranch } from '../../views/charts/branch-series.ts';
import { findConstants, mainCharts, planCharts } from '../../views/charts/charts.ts';
import { CHART_SECTIONS, type Chart } from '../../views/charts/chart.ts';
import { smoothChart } from '../../views/charts/smooth.ts';
import { navigate, pathTo, useQuery } from '../location.ts';
import type { ChartMarker } from '../parts/chart-options.ts';
import { ChartCard, type ChartZoom } from '../parts/chart.tsx';
import { Empty } from '../parts/small.tsx';
import { attemptsOfSteps } from './advisories.tsx';
import { SmoothingSlider } from './smoothing.tsx';
import { getJson, useData } from '../data.ts';

type Range = readonly [number, number] | null;

export function Curves({ curve, view }: { curve: CurveView; view: RunView }) {
  const [query, setQuery] = useQuery();
  const [weight, setWeight] = useState(0);
  const [range, setRange] = useState<Range>(null);
  const left = useLeftBranches(view, curve);
  const agreement = useAgreement(view);
  const planned = useMemo(
    () => [...planCharts(curve.steps, curve.evals, curve.evalRewards), ...agreementCharts(agreement)],
    [curve, agreement],
  );
  const main = useMemo(() => mainCharts(planned), [planned]);
  const hasMore = main.length < planned.length;
  const isAll = !hasMore || query.get('charts') === 'all';
  const charts = useMemo(() => {
    const smooth = (isAll ? planned : main).map((chart) => smoothChart(chart, weight));
    return smooth.map((chart) => (chart.title === 'Reward' ? addLeftBranches(chart, left) : chart));
  }, [planned, isAll, weight, left]);
  if (curve.steps.length === 0) {
    return <Empty title="No step is finished yet">Curves begin with the first step that is committed.</Empty>;
  }
  const markers = markersOf(curve, view);
  const shared = {
    wide: charts[0],
    markers,
    zoom: { range, set: setRange } satisfies ChartZoom,
    onPick: (step: number) => navigate(pathTo('runs', curve.run, 'steps', step)),
  };
  return (
    <>
      <div class="toolbar">
        {hasMore && (
          <button type="button" aria-pressed={isAll} onClick={() => setQuery({ charts: isAll ? null : 'all' })}>
            All {planned.length} charts
          </button>
        )}
        <SmoothingSlider weight={weight} onChange={setWeight} />
        <span class="note">Drag over a chart to zoom; click a point to open its step.</span>
        <RangeLinks run={curve.run} range={range} onReset={() => setRange(null)} />
      </div>
      {agreement !== null && <p class="note">{describeAgreement(agreement.all)}</p>}
      <Markers markers={markers} />
      {isAll ? <Sections charts={charts} {...shared} /> : <MainCharts charts={charts} {...shared} />}
      {isAll && <Constants curve={curve} />}
    </>
  );
}

function MainCharts(props: GridProps) {
  return (
    <section>
      <h2 class="visually-hidden">Main charts</h2>
      <ChartGrid {...props} />
    </section>
  );
}

function Sections({ charts, ...shared }: GridProps) {
  const sections = CHART_SECTIONS.map(([section, heading]) => {
    const shown = charts.filter((chart) => chart.section === section);
    if (shown.length === 0) return null;
    return section === 'more' ? (
      <details key={section} class="more-charts">
        <summary>
          {heading} <span class="dim">({plural(shown.length, 'chart')})</span>
        </summary>
        <ChartGrid charts={shown} {...shared} />
      </details>
    ) : (
      <section key={section}>
        <h2>{heading}</h2>
        <ChartGrid charts={shown} {...shared} />
      </section>
    );
  });
  return <>{sections}</>;
}

interface GridProps {
  readonly charts: readonly Chart[];
  readonly wide: Chart | undefined;
  readonly markers: readonly ChartMarker[];
  readonly zoom: ChartZoom;
  readonly onPick: (step: number) => void;
}

function ChartGrid({ charts, wide, ...shared }: GridProps) {
  return (
    <div class="charts">
      {charts.map((chart) => (
        <ChartCard key={chart.title} chart={chart} isWide={chart === wide} {...shared} />
      ))}
    </div>
  );
}

/** Marks the begin of a branch and the change of a setting. */
function markersOf({ parts }: CurveView, { changes }: RunView): ChartMarker[] {
  return [
    ...parts
      .filter(({ branch }) => branch > 0)
      .map(({ branch, fromStep }) => ({ x: fromStep, label: `branch ${branch}` })),
    ...changes
      .filter(({ branch, step }) => (parts.findLast(({ fromStep }) => fromStep <= step)?.branch ?? 0) === branch)
      .map(({ setting, to, step }) => ({ x: step, label: `${setting} ${to}` })),
  ];
}

/** In a line beside the charts: upon the curves, their words would hide them. */
function Markers({ markers }: { markers: readonly ChartMarker[] }) {
  if (markers.length === 0) return null;
  return (
    <p class="note markers">Dashed lines: {markers.map(({ x, label }) => `${label} from step ${x} on`).join(' · ')}</p>
  );
}

function RangeLinks({ run, range, onReset }: { run: string; range: Range; onReset: () => void }) {
  if (range === null) return null;
  const [from, to] = [Math.max(1, Math.ceil(range[0])), Math.max(1, Math.floor(range[1]))];
  return (
    <span class="range-links">
      <a href={`#${attemptsOfSteps(run, from, to)}`}>Attempts of {formatSteps([from, to])}</a>
      <button type="button" onClick={onReset}>
        Reset zoom
      </button>
    </span>
  );
}

function Constants({ curve }: { curve: CurveView }) {
  const constants = useMemo(() => findConstants(curve.steps), [curve]);
  if (constants.length === 0) return null;
  const text = constants
    .map(({ name, value }) => `${name} ${Number.isInteger(value) ? value : formatNumber(value)}`)
    .join(' · ');
  return <p class="note constants">Not drawn, because they are the same in all steps: {text}</p>;
}

/** Null unless people review the run. */
function useAgreement({ config, row: { run } }: RunView): AgreementView['agreement'] {
  const isReviewed = config.judge === REVIEW;
  return (
    useData<AgreementView>(isReviewed ? `${pathTo('runs', run).slice(1)}/agreement` : null).value?.agreement ?? null
  );
}

/** More would hide each other. */
const MOST_BRANCHES = 3;

/** The newest of them; none as long as they are not there. They never change. */
function useLeftBranches(view: RunView, curve: CurveView): readonly LeftBranch[] {
  const [left, setLeft] = useState<readonly LeftBranch[]>([]);
  const branches = view.lineage
    .filter(({ run, branch, step, from }) => run === curve.run && branch !== curve.branch && step > (from?.step ?? 0))
    .map(({ branch }) => branch)
    .slice(-MOST_BRANCHES);
  useEffect(() => {
    let isGone = false;
    const read = async (branch: number): Promise<LeftBranch> => {
      const path = `${pathTo('runs', curve.run).slice(1)}/curve?branch=${branch}`;
      const { steps, parts } = await getJson<CurveView>(path);
      const from = parts.find((part) => part.branch === branch)?.fromStep ?? 0;
      return { branch, steps: steps.filter(({ step }) => step >= from) };
    };
    // A branch that cannot be read is not drawn: the lineage links to it, and its page says why.
    const load = async (): Promise<void> => {
      const all = await Promise.allSettled(branches.map(read));
      if (!isGone) setLeft(all.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
    };
    void load();
    return () => {
      isGone = true;
    };
  }, [curve.run, branches.join(',')]);
  return left;
}
