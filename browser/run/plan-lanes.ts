/** Places of the spans of a timeline. */
import type { LaneSpan, LanesView } from '../../views/api/run-views.ts';

export interface Period {
  readonly from: number;
  readonly to: number;
}

interface PlacedSpan {
  readonly span: LaneSpan;
  readonly from: number;
  readonly to: number;
  /** Line in its lane: spans at the same time have different ones. */
  readonly line: number;
}

export interface PlacedLane {
  readonly name: string;
  readonly lines: number;
  readonly spans: readonly PlacedSpan[];
}

/** Lines of a lane; what does not fit shares the last. */
const MOST_LINES = 16;

export function periodOf({ lanes }: LanesView, now: number): Period | null {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { spans } of lanes)
    for (const { startedAt, endedAt } of spans) {
      from = Math.min(from, Date.parse(startedAt));
      to = Math.max(to, endedAt === null ? now : Date.parse(endedAt));
    }
  return from < to ? { from, to } : null;
}

export function placeLanes({ lanes }: LanesView, now: number): PlacedLane[] {
  return lanes.filter(({ spans }) => spans.length > 0).map(({ name, spans }) => placeLane(name, spans, now));
}

function placeLane(name: string, spans: readonly LaneSpan[], now: number): PlacedLane {
  const ends: number[] = [];
  const placed = spans
    .map((span) => ({
      span,
      from: Date.parse(span.startedAt),
      to: span.endedAt === null ? now : Date.parse(span.endedAt),
    }))
    .toSorted((a, b) => a.from - b.from)
    .map((item) => {
      const free = ends.findIndex((end) => end <= item.from);
      const line = Math.min(MOST_LINES - 1, free === -1 ? ends.length : free);
      ends[line] = Math.max(ends[line] ?? 0, item.to);
      return { ...item, line };
    });
  return { name, lines: Math.max(1, ends.length), spans: placed };
}

/** Spans in sight; of ordinary ones that would share a pixel, the first. */
export function spansInSight({ spans }: PlacedLane, { from, to }: Period, pixels: number): readonly PlacedSpan[] {
  const perPixel = (to - from) / Math.max(1, pixels);
  const lastPixel = new Map<number, number>();
  return spans.filter(({ span, from: start, to: end, line }) => {
    if (end < from || start > to) return false;
    if (!isOrdinary(span) || end - start > perPixel) return true;
    const pixel = Math.floor((start - from) / perPixel);
    if (lastPixel.get(line) === pixel) return false;
    lastPixel.set(line, pixel);
    return true;
  });
}

/** Work that went as it should; everything else is listed. */
export function isOrdinary({ kind, attempt }: LaneSpan): boolean {
  return kind === 'work' && attempt <= 1;
}
