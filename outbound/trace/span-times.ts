/**
 * Times of spans, as far as the store has them. Of a call whose answer came from the journal only the attempt's time is
 * known, and of files from before calls were timed only the group's: such a span lasts nothing, stands in its order, and
 * `temper.time` says whose time it has.
 */
import { nanoseconds } from './otlp/span.ts';
import type { TracedGroup } from './traced.ts';

export interface SpanTime {
  readonly start: bigint;
  readonly end: bigint;
  readonly of: 'span' | 'attempt' | 'group' | 'step';
}

export interface AttemptTime extends SpanTime {
  /** Time of the call with this index, in the order in which the agent asked. */
  call(index: number): SpanTime;
  /** Between the answer to this call and the next call. */
  after(index: number): SpanTime;
}

export function timeOfGroup({ times, over }: Pick<TracedGroup, 'times' | 'over'>): SpanTime {
  const { startedAt = times?.endedAt, endedAt } = times ?? {};
  if (startedAt === undefined || endedAt === undefined)
    return moment(nanoseconds(startedAt ?? endedAt ?? over), 'step');
  return { start: nanoseconds(startedAt), end: nanoseconds(endedAt), of: 'span' };
}

export function timeOfAttempt(group: TracedGroup, attempt: number, calls: number): AttemptTime {
  const known = group.times?.attemptTimes?.[attempt];
  const outer = timeOfGroup(group);
  const own: SpanTime =
    known === undefined
      ? { ...outer, of: outer.of === 'span' ? 'group' : 'step' }
      : { start: nanoseconds(known.startedAt), end: nanoseconds(known.endedAt), of: 'span' };
  const timed = known?.calls.length === calls ? known.calls : [];
  // One microsecond for each place keeps the order in viewers that sort by time.
  const inOrder = (place: number): SpanTime =>
    moment(own.start + BigInt(place) * 1000n, own.of === 'span' ? 'attempt' : own.of);
  return {
    ...own,
    call(index) {
      const [asked, answered] = timed[index] ?? [];
      if (asked === undefined || answered === undefined) return inOrder(2 * index);
      return { start: nanoseconds(asked), end: nanoseconds(answered), of: 'span' };
    },
    after(index) {
      const [answered, next] = [timed[index]?.[1], timed[index + 1]?.[0]];
      if (answered === undefined || next === undefined) return inOrder(2 * index + 1);
      return { start: nanoseconds(answered), end: nanoseconds(Math.max(answered, next)), of: 'span' };
    },
  };
}

function moment(at: bigint, of: SpanTime['of']): SpanTime {
  return { start: at, end: at, of };
}
