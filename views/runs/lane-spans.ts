/** Spans by lane, from whatever tells of them. */
import type { LaneSpan, LanesView } from '../api/run-views.ts';

export type LaneName = LanesView['lanes'][number]['name'];

export interface PlacedSpan {
  readonly lane: LaneName;
  readonly span: LaneSpan;
}

const LANE_NAMES: readonly LaneName[] = ['rollout', 'judge', 'train', 'checkpoint', 'eval', 'wait', 'worker'];

/** In the order of time; a lane in which nothing happened is left out. */
export function inLanes(spans: readonly PlacedSpan[]): LanesView['lanes'] {
  return LANE_NAMES.flatMap((name) => {
    const own = spans.filter(({ lane }) => lane === name).map(({ span }) => span);
    return own.length === 0 ? [] : [{ name, spans: own.toSorted(byStart) }];
  });
}

function byStart(one: LaneSpan, other: LaneSpan): number {
  return one.startedAt < other.startedAt ? -1 : one.startedAt > other.startedAt ? 1 : 0;
}
