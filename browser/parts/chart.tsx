/** A chart of `views/charts`: hover for values, drag to zoom, click for a step; or the same as a table. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { formatNumber } from '../../core/reports/format.ts';
import type { Chart } from '../../views/charts/chart.ts';
import { describeChart } from '../../views/charts/smooth.ts';
import { chartData, chartOptions, type ChartMarker } from './chart-options.ts';
import { VirtualTable } from './table.tsx';
import { Term } from './small.tsx';
import { useThemeVersion } from './theme.ts';

export interface ChartZoom {
  readonly range: readonly [number, number] | null;
  readonly set: (range: readonly [number, number] | null) => void;
}

interface ChartProps {
  readonly chart: Chart;
  /** Takes the whole width of its grid. */
  readonly isWide?: boolean;
  /** A click on a step, or Enter. */
  readonly onPick?: ((step: number) => void) | undefined;
  readonly markers?: readonly ChartMarker[];
  /** Shared by charts that zoom together; without it, each has its own. */
  readonly zoom?: ChartZoom;
}

export function ChartCard({ chart, isWide = false, onPick, markers = [], zoom }: ChartProps) {
  const [isTable, setIsTable] = useState(false);
  const [ownRange, setOwnRange] = useState<readonly [number, number] | null>(null);
  const { range, set } = zoom ?? { range: ownRange, set: setOwnRange };
  return (
    <section class={`card chart ${isWide ? 'wide' : ''}`}>
      <div class="chart-head">
        <div>
          <h3>
            <Term label={chart.title} />
          </h3>
          <p class="note">{chart.note}</p>
        </div>
        <div class="chart-tools">
          {range !== null && !isTable && (
            <button type="button" onClick={() => set(null)}>
              Reset zoom
            </button>
          )}
          <button
            type="button"
            class="quiet"
            aria-pressed={isTable}
            aria-label={`${chart.title} as a table`}
            title="Show as table"
            onClick={() => setIsTable(!isTable)}
          >
            {isTable ? 'Chart' : 'Table'}
          </button>
        </div>
      </div>
      {isTable ? (
        <ChartTable chart={chart} onPick={onPick} />
      ) : (
        <Plot {...{ chart, onPick, markers, range }} height={isWide ? 260 : 190} onZoom={set} />
      )}
    </section>
  );
}

function ChartTable({ chart, onPick }: Pick<ChartProps, 'chart' | 'onPick'>) {
  const rows = useMemo(() => chart.x.map((_, index) => index).toReversed(), [chart]);
  const columns = [
    {
      key: 'step',
      label: 'step',
      value: (index: number) => chart.x[index]!,
      render: (index: number) =>
        onPick === undefined ? (
          chart.x[index]
        ) : (
          <button type="button" class="link" onClick={() => onPick(chart.x[index]!)}>
            {chart.x[index]}
          </button>
        ),
    },
    ...chart.series.map(({ label, values }) => ({
      key: label,
      label,
      align: 'end' as const,
      value: (index: number) => values[index] ?? null,
      render: (index: number) => formatNumber(values[index]),
    })),
  ];
  return (
    <div class="chart-table">
      <VirtualTable label={chart.title} columns={columns} rows={rows} keyOf={String} rowHeight={26} />
    </div>
  );
}

interface PlotProps extends Required<Pick<ChartProps, 'chart' | 'markers'>> {
  readonly onPick: ((step: number) => void) | undefined;
  readonly height: number;
  readonly range: readonly [number, number] | null;
  readonly onZoom: (range: readonly [number, number]) => void;
}

function Plot(props: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const { chart, range, onPick } = props;
  const isNear = useIsNear(place);
  const plot = useRef<uPlot | null>(null);
  const theme = useThemeVersion();
  const shape = JSON.stringify([chart.series.map(({ label, style, color }) => [label, style, color]), chart.range]);

  useEffect(() => {
    if (!isNear || place.current === null) return undefined;
    const [drawn, stop] = drawPlot(place.current, latest, (index) => showValues(legend.current, latest.current, index));
    plot.current = drawn;
    return () => {
      plot.current = null;
      stop();
    };
  }, [isNear, theme, shape]);
  useEffect(() => {
    plot.current?.setData(chartData(chart), false);
    zoomTo(plot.current, latest.current);
    showValues(legend.current, latest.current, null);
  }, [chart, isNear, theme, range?.[0], range?.[1]]);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (plot.current !== null && moveCursor(event.key, plot.current, latest.current)) event.preventDefault();
  };
  return (
    <>
      <div
        ref={place}
        class={`plot ${onPick === undefined ? '' : 'is-linked'}`}
        style={{ minHeight: `${props.height}px` }}
        role="img"
        tabIndex={0}
        aria-label={describeChart(chart, formatNumber)}
        onKeyDown={onKeyDown}
      />
      <div class="legend" ref={legend}>
        {chart.series.map(({ label, color }) => (
          <span key={label}>
            <i style={{ background: `var(${color})` }} />
            {label} <b />
          </span>
        ))}
        <span class="legend-step" />
      </div>
    </>
  );
}

function drawPlot(
  place: HTMLElement,
  latest: { readonly current: PlotProps },
  onCursor: (index: number | null) => void,
): [uPlot, () => void] {
  const width = (): number => Math.max(200, place.clientWidth);
  const options = chartOptions(
    () => latest.current.chart,
    { width: width(), height: latest.current.height },
    () => latest.current.markers,
    { onCursor, onZoom: (from, to) => latest.current.onZoom([from, to]) },
  );
  const plot = new uPlot(options, chartData(latest.current.chart), place);
  let pressedAt = 0;
  plot.over.addEventListener('mousedown', ({ clientX }) => {
    pressedAt = clientX;
  });
  plot.over.addEventListener('click', ({ clientX }) => {
    const index = plot.cursor.idx;
    // The end of a drag is no click.
    if (Math.abs(clientX - pressedAt) > 3 || typeof index !== 'number') return;
    latest.current.onPick?.(latest.current.chart.x[index]!);
  });
  const sizes = new ResizeObserver(() => {
    if (Math.abs(plot.width - width()) > 1) plot.setSize({ width: width(), height: latest.current.height });
  });
  sizes.observe(place);
  return [
    plot,
    () => {
      sizes.disconnect();
      plot.destroy();
    },
  ];
}

function zoomTo(plot: uPlot | null, { range, chart }: PlotProps): void {
  if (plot === null || chart.x.length === 0) return;
  const [min, max] = range ?? [chart.x[0]!, chart.x.at(-1)!];
  plot.setScale('x', min === max ? { min: min - 1, max: max + 1 } : { min, max });
}

/** Straight into the page: the cursor moves over all charts at once. */
function showValues(legend: HTMLElement | null, { chart }: PlotProps, index: number | null): void {
  if (legend === null) return;
  const values = legend.querySelectorAll('b');
  chart.series.forEach((series, at) => {
    const value = index === null ? series.values.findLast((each) => each !== null) : series.values[index];
    const bounds = index === null ? '' : intervalText(series.interval, index);
    if (values[at]) values[at].textContent = formatNumber(value) + bounds;
  });
  const step = legend.querySelector('.legend-step');
  if (step) step.textContent = index === null ? '' : `at step ${chart.x[index]}`;
}

function intervalText(interval: Chart['series'][number]['interval'], index: number): string {
  const [low, high] = [interval?.low[index], interval?.high[index]];
  return typeof low === 'number' && typeof high === 'number' ? ` (${formatNumber(low)} to ${formatNumber(high)})` : '';
}

/** Whether the key was one of the chart's. */
function moveCursor(key: string, plot: uPlot, { chart, onPick }: PlotProps): boolean {
  const last = chart.x.length - 1;
  const at = plot.cursor.idx ?? last;
  if (key === 'Enter') onPick?.(chart.x[at]!);
  const moves: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
  const next = moves[key];
  if (next === undefined) return key === 'Enter';
  const index = Math.min(last, Math.max(0, next));
  plot.setCursor({ left: plot.valToPos(chart.x[index]!, 'x'), top: plot.over.clientHeight / 2 });
  return true;
}

/** A chart is drawn when it comes near the window, or when the browser has nothing else to do: a run has dozens of them. */
function useIsNear(place: { readonly current: HTMLElement | null }): boolean {
  const [isNear, setIsNear] = useState(false);
  useEffect(() => {
    if (place.current === null) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) {
          setIsNear(true);
          observer.disconnect();
        }
      },
      { rootMargin: '400px' },
    );
    observer.observe(place.current);
    // So that all are there when the page is printed.
    const idle = 'requestIdleCallback' in globalThis ? requestIdleCallback(() => setIsNear(true)) : null;
    return () => {
      observer.disconnect();
      if (idle !== null) cancelIdleCallback(idle);
    };
  }, []);
  return isNear;
}
