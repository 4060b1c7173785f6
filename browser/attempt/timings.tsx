/** When each call of an attempt ran: a bar for each, from the start of the attempt to its end. */
import { formatDuration, plural } from '../../core/reports/format.ts';
import type { AttemptView, TurnView } from '../../views/api/attempt-views.ts';

interface Bar {
  readonly label: string;
  readonly from: number;
  readonly seconds: number;
}

export function Timings({ attempt }: { attempt: AttemptView }) {
  const bars = barsOf(attempt.turns, attempt.startedAt);
  if (bars.length === 0) return <p class="note">No times were recorded for this attempt.</p>;
  const end = Math.max(attempt.seconds ?? 0, ...bars.map(({ from, seconds }) => from + seconds));
  const inCalls = bars.reduce((sum, { seconds }) => sum + seconds, 0);
  return (
    <figure class="timings">
      <figcaption class="note">
        {formatDuration(end)} in all, of which {formatDuration(inCalls)} in {plural(bars.length, 'call')}; the rest is
        the agent’s own work and waiting
      </figcaption>
      <ol>
        {bars.map(({ label, from, seconds }, index) => (
          <li key={index}>
            <span class="note">{label}</span>
            <span class="lane" aria-hidden="true">
              <i style={{ marginLeft: percent(from, end), width: percent(seconds, end) }} />
            </span>
            <span class="number">{formatDuration(seconds)}</span>
          </li>
        ))}
      </ol>
    </figure>
  );
}

function barsOf(turns: readonly TurnView[], startedAt: string | null): Bar[] {
  const timed = turns.flatMap((turn, index) =>
    turn.startedAt === null || turn.seconds === null
      ? []
      : [{ label: `turn ${index + 1}`, at: Date.parse(turn.startedAt), seconds: turn.seconds }],
  );
  const zero = startedAt === null ? Math.min(...timed.map(({ at }) => at)) : Date.parse(startedAt);
  return timed.map(({ label, at, seconds }) => ({ label, from: Math.max(0, (at - zero) / 1000), seconds }));
}

function percent(value: number, whole: number): string {
  return `${whole === 0 ? 0 : (100 * value) / whole}%`;
}
