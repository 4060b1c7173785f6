/** Lanes as a drawing: drag to zoom. The table below it says the same. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { formatDuration } from '../../core/reports/format.ts';
import type { LaneSpan } from '../../views/api/run-views.ts';
import { navigate } from '../location.ts';
import { isOrdinary, spansInSight, type Period, type PlacedLane } from './plan-lanes.ts';

interface LaneChartProps {
  readonly lanes: readonly PlacedLane[];
  readonly whole: Period;
  readonly linkOf: (span: LaneSpan) => string | null;
}

const LINE = 9;
const GAP = 10;
const HEAD = 92;
const AXIS = 22;
const TICKS = 6;
/** Smallest selection that zooms, in pixels. */
const DRAGGED = 6;

export function LaneChart({ lanes, whole, linkOf }: LaneChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const [zoomed, setZoomed] = useState<Period | null>(null);
  const [pointed, setPointed] = useState<LaneSpan | null>(null);
  const period = zoomed ?? whole;
  const pixels = Math.max(1, width - HEAD);
  const x = (time: number): number => HEAD + ((time - period.from) / (period.to - period.from)) * pixels;
  const brush = useBrush(place, (from, to) => {
    const timeAt = (pixel: number): number =>
      period.from + (Math.max(0, pixel - HEAD) / pixels) * (period.to - period.from);
    setZoomed({ from: timeAt(from), to: timeAt(to) });
  });
  const open = (span: LaneSpan): void => {
    const link = linkOf(span);
    if (link !== null && !brush.hasDragged()) navigate(link);
  };
  const tops = topsOf(lanes);
  const height = tops.at(-1)! + AXIS;
  return (
    <div class="card lanes">
      <div class="lanes-head">
        <span class="note" aria-live="off">
          {pointed === null ? 'Drag to zoom; click a span to open its step.' : describeSpan(pointed)}
        </span>
        <ZoomButtons {...{ whole, zoomed, setZoomed }} />
      </div>
      <div ref={place} class="lanes-place" {...brush.handlers}>
        <svg width={width} height={height} role="img" aria-label={describeLanes(lanes, period)}>
          <Axis period={period} x={x} height={height} />
          {lanes.map((lane, at) => (
            <g key={lane.name} transform={`translate(0 ${tops[at]})`}>
              <LaneSpans {...{ lane, period, pixels, x }} onPoint={setPointed} onOpen={open} />
            </g>
          ))}
          {brush.selected !== null && (
            <rect
              class="brush"
              x={brush.selected[0]}
              y="0"
              width={brush.selected[1] - brush.selected[0]}
              height={height}
            />
          )}
        </svg>
      </div>
    </div>
  );
}

interface SpansProps {
  readonly lane: PlacedLane;
  readonly period: Period;
  readonly pixels: number;
  readonly x: (time: number) => number;
  readonly onPoint: (span: LaneSpan | null) => void;
  readonly onOpen: (span: LaneSpan) => void;
}

function LaneSpans({ lane, period, pixels, x, onPoint, onOpen }: SpansProps) {
  return (
    <>
      <text class="lane-name" x="0" y={LINE}>
        {lane.name}
      </text>
      {spansInSight(lane, period, pixels).map(({ span, from, to, line }) => {
        const left = Math.max(HEAD, x(from));
        return (
          <rect
            key={`${span.startedAt} ${span.label} ${line}`}
            class={`span ${classOf(lane, span)}`}
            x={left}
            y={line * LINE}
            width={Math.max(1, x(Math.min(to, period.to)) - left)}
            height={LINE - 2}
            rx="1"
            onPointerEnter={() => onPoint(span)}
            onPointerLeave={() => onPoint(null)}
            onClick={() => onOpen(span)}
          />
        );
      })}
    </>
  );
}

function classOf({ name }: PlacedLane, span: LaneSpan): string {
  if (isOrdinary(span)) return name;
  return span.kind === 'work' ? 'retry' : span.kind;
}

function ZoomButtons(props: { whole: Period; zoomed: Period | null; setZoomed: (period: Period | null) => void }) {
  const { whole, zoomed, setZoomed } = props;
  const zoom = (factor: number): void => {
    const { from, to } = zoomed ?? whole;
    const [middle, half] = [(from + to) / 2, ((to - from) / 2) * factor];
    const next = { from: Math.max(whole.from, middle - half), to: Math.min(whole.to, middle + half) };
    setZoomed(next.from === whole.from && next.to === whole.to ? null : next);
  };
  return (
    <span class="chart-tools">
      <button type="button" aria-label="Zoom in" onClick={() => zoom(0.5)}>
        +
      </button>
      <button type="button" aria-label="Zoom out" disabled={zoomed === null} onClick={() => zoom(2)}>
        −
      </button>
      <button type="button" disabled={zoomed === null} onClick={() => setZoomed(null)}>
        Reset zoom
      </button>
    </span>
  );
}

/** Top of each lane, and the bottom of the last. */
function topsOf(lanes: readonly PlacedLane[]): number[] {
  const tops = [GAP];
  for (const { lines } of lanes) tops.push(tops.at(-1)! + lines * LINE + GAP);
  return tops;
}

function Axis({ period, x, height }: { period: Period; x: (time: number) => number; height: number }) {
  const isLong = period.to - period.from > 86_400_000;
  const times = Array.from({ length: TICKS }, (_, at) => period.from + ((period.to - period.from) * at) / (TICKS - 1));
  return (
    <g class="lane-axis">
      {times.map((time, at) => (
        <g key={at} transform={`translate(${x(time)} 0)`}>
          <line y1="0" y2={height - AXIS} />
          <text y={height - 6} text-anchor={at === 0 ? 'start' : at === TICKS - 1 ? 'end' : 'middle'}>
            {new Date(time)
              .toISOString()
              .slice(isLong ? 5 : 11, isLong ? 16 : 19)
              .replace('T', ' ')}
          </text>
        </g>
      ))}
    </g>
  );
}

function describeSpan({ label, step, group, startedAt, endedAt, attempt, host }: LaneSpan): string {
  const seconds = endedAt === null ? null : (Date.parse(endedAt) - Date.parse(startedAt)) / 1000;
  return [
    label,
    step === null ? '' : `step ${step}`,
    group === null ? '' : `group ${group}`,
    seconds === null ? 'in progress' : formatDuration(seconds),
    attempt > 1 ? `attempt ${attempt}` : '',
    host ?? '',
  ]
    .filter((part) => part !== '')
    .join(' · ');
}

function describeLanes(lanes: readonly PlacedLane[], { from, to }: Period): string {
  const counts = lanes.map(({ name, spans }) => `${spans.length} of ${name}`).join(', ');
  return `Timeline over ${formatDuration((to - from) / 1000)}: ${counts}. The table below lists them.`;
}

function useWidth(place: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(800);
  useEffect(() => {
    if (place.current === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.max(320, place.current?.clientWidth ?? 0)));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** Selects a stretch by dragging; `hasDragged` tells a click that ends a drag from others. */
function useBrush(place: { readonly current: HTMLElement | null }, onSelect: (from: number, to: number) => void) {
  const [ends, setEnds] = useState<readonly [number, number] | null>(null);
  const dragged = useRef(false);
  const at = ({ clientX }: PointerEvent): number => clientX - (place.current?.getBoundingClientRect().left ?? 0);
  const selected = ends === null ? null : ([Math.min(...ends), Math.max(...ends)] as const);
  return {
    selected,
    hasDragged: () => dragged.current,
    handlers: {
      onPointerDown: (event: PointerEvent) => {
        dragged.current = false;
        if (event.button === 0 && event.pointerType === 'mouse') setEnds([at(event), at(event)]);
      },
      onPointerMove: (event: PointerEvent) => {
        if (ends === null) return;
        if (Math.abs(at(event) - ends[0]) > DRAGGED) dragged.current = true;
        setEnds([ends[0], at(event)]);
      },
      onPointerUp: () => {
        if (selected !== null && selected[1] - selected[0] > DRAGGED) onSelect(...selected);
        setEnds(null);
      },
      onPointerLeave: () => setEnds(null),
    },
  };
}
