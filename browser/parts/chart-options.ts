/** How uPlot draws a chart of `views/charts`. */
import uPlot from 'uplot';
import { formatNumber } from '../../core/reports/format.ts';
import type { Chart, Series } from '../../views/charts/chart.ts';
import { colorOf } from './theme.ts';

/** Line across a chart, where something changed; what it was stands beside the charts. */
export interface ChartMarker {
  readonly x: number;
  readonly label: string;
}

export interface ChartEvents {
  /** The cursor is at this index of `x`, or at none. */
  readonly onCursor: (index: number | null) => void;
  readonly onZoom: (from: number, to: number) => void;
}

const sync = uPlot.sync('steps');
const WHOLE_STEPS = [1, 10, 100, 1e3, 1e4, 1e5].flatMap((power) => [power, 2 * power, 5 * power]);
const FONT = '11px system-ui, sans-serif';
/** Smallest selection that zooms, in pixels. */
const DRAGGED = 6;

export function chartData(chart: Chart): uPlot.AlignedData {
  return [[...chart.x], ...chart.series.map(({ values }) => [...values])];
}

export function chartOptions(
  chart: () => Chart,
  size: { width: number; height: number },
  markers: () => readonly ChartMarker[],
  { onCursor, onZoom }: ChartEvents,
): uPlot.Options {
  const { range, series } = chart();
  return {
    ...size,
    legend: { show: false },
    cursor: {
      sync: { key: sync.key },
      points: { size: 6 },
      y: false,
      drag: { x: true, y: false, setScale: false, dist: DRAGGED },
    },
    scales: {
      x: { time: false },
      y: range === null ? { range: (_, low, high) => rangeOf(chart(), low, high) } : { range: [...range] },
    },
    axes: [
      { ...axis(), incrs: WHOLE_STEPS, size: 28 },
      { ...axis(), size: 56, values: (_, ticks) => ticks.map(formatTick) },
    ],
    series: [{ label: 'step' }, ...series.map(seriesOptions)],
    hooks: {
      setCursor: [({ cursor }) => onCursor(cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < DRAGGED) return;
          onZoom(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      drawAxes: [(plot) => drawMarkers(plot, markers())],
      draw: [(plot) => drawIntervals(plot, chart())],
    },
  };
}

/** Room for the intervals, too. */
function rangeOf({ series }: Chart, low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  const bounds = series.flatMap(({ interval }) => (interval === undefined ? [] : [...interval.low, ...interval.high]));
  const known = bounds.filter((bound) => bound !== null && Number.isFinite(bound)) as number[];
  const [least, most] = [Math.min(low, ...known), Math.max(high, ...known)];
  if (least === most) return aroundValue(least);
  const [from, to] = uPlot.rangeNum(least, most, 0.1, true);
  return [from ?? 0, to ?? 1];
}

/** A line of equal values is in the middle; uPlot would begin at 0 and end at 100. */
function aroundValue(value: number): [number, number] {
  const room = Math.abs(value) * 0.1 || 0.1;
  return [value - room, value + room];
}

function formatTick(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6 || (size !== 0 && size < 1e-3)) return value.toExponential(0);
  return size >= 1e4 ? `${formatNumber(value / 1e3, 0)} k` : String(Number(value.toPrecision(4)));
}

function axis(): uPlot.Axis {
  return {
    stroke: colorOf('--dim'),
    grid: { stroke: colorOf('--line'), width: 1 },
    ticks: { show: false },
    border: { show: false },
    font: FONT,
  };
}

function seriesOptions({ style, color, values }: Series): uPlot.Series {
  const stroke = colorOf(color);
  if (style === 'faint')
    return { stroke: color === '--faint' ? stroke : fade(stroke), width: 1, spanGaps: true, points: { show: false } };
  if (style === 'points') {
    const points = { show: true, size: 7, width: 2, fill: colorOf('--card') };
    return { stroke, width: 1.5, dash: [4, 4], spanGaps: true, points };
  }
  return {
    stroke,
    width: 1.75,
    spanGaps: true,
    points: { show: values.filter((value) => value !== null).length === 1 },
  };
}

/** The same color, half as strong. */
function fade(color: string): string {
  return color.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.45)');
}

function drawMarkers(plot: uPlot, markers: readonly ChartMarker[]): void {
  const { ctx, bbox } = plot;
  const { min = 0, max = 0 } = plot.scales['x'] ?? {};
  ctx.save();
  ctx.strokeStyle = colorOf('--line-strong');
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { x } of markers) {
    if (x < min || x > max) continue;
    const at = plot.valToPos(x, 'x', true);
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function drawIntervals(plot: uPlot, chart: Chart): void {
  const { ctx } = plot;
  const { min = 0, max = 0 } = plot.scales['x'] ?? {};
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  chart.series.forEach(({ interval, color }, at) => {
    if (interval === undefined || plot.series[at + 1]?.show === false) return;
    ctx.strokeStyle = fade(colorOf(color));
    ctx.beginPath();
    chart.x.forEach((x, index) => {
      const [low, high] = [interval.low[index], interval.high[index]];
      if (x < min || x > max || typeof low !== 'number' || typeof high !== 'number') return;
      const left = plot.valToPos(x, 'x', true);
      ctx.moveTo(left, plot.valToPos(low, 'y', true));
      ctx.lineTo(left, plot.valToPos(high, 'y', true));
    });
    ctx.stroke();
  });
  ctx.restore();
}
