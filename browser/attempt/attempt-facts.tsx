/** Outcome of an attempt: reward, metrics, verdict, failure, logs. */
import { formatNumber, plural } from '../../core/reports/format.ts';
import type { AttemptView } from '../../views/api/attempt-views.ts';
import { LongText } from './message.tsx';

export function Reward({ reward, advantage = null }: { reward: number | null; advantage?: number | null }) {
  const tone = reward === null || reward === 0 ? '' : reward > 0 ? 'good' : 'bad';
  return (
    <span
      class={`reward ${tone}`}
      title={advantage === null ? undefined : `advantage ${formatNumber(advantage)} (reward minus the group’s mean)`}
    >
      {reward === null ? 'no reward' : formatNumber(reward)}
    </span>
  );
}

/** A metric of one attempt: counts are whole numbers, and look like it. */
export function formatMetric(value: number | boolean): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return Number.isInteger(value) ? String(value) : formatNumber(value);
}

/** `win · moves 5 · truncated` */
export function metricFacts({ metrics, scores, row }: Pick<AttemptView, 'metrics' | 'scores' | 'row'>): string[] {
  const named = Object.entries({ ...metrics, ...scores })
    .filter(([, value]) => value !== false)
    .map(([name, value]) => (value === true ? name : `${name} ${formatMetric(value)}`));
  return row.truncated ? [...named, 'truncated'] : named;
}

/** Failure, judge's reason, rewards that people gave. */
export function Outcome({ attempt }: { attempt: AttemptView }) {
  return (
    <>
      {attempt.failureMessage !== null && (
        <p class="wrong">
          {attempt.row.failure === null ? '' : `${attempt.row.failure}: `}
          {attempt.failureMessage}
        </p>
      )}
      {attempt.explanation !== null && <LongText text={attempt.explanation} className="verdict" />}
      {attempt.given.map(({ reward, by, note, at }, index) => (
        <p key={index} class="verdict">
          given {formatNumber(reward)} by <bdi>{by ?? 'somebody'}</bdi>, {at}
          {note === null ? '' : ': '}
          {note !== null && <bdi>{note}</bdi>}
        </p>
      ))}
    </>
  );
}

export function Logs({ lines }: { lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <details class="folded">
      <summary>Log, {plural(lines.length, 'line')}</summary>
      <LongText text={lines.join('\n')} />
    </details>
  );
}
