/** Spans that follow from a run's curve and state, where no server tells them. Pure. */
import type { RunState, StepSummary } from '../../core/contract.ts';
import { formatReason } from '../../core/settings.ts';
import type { PlacedSpan } from './lane-spans.ts';

/** Shorter ones are not worth a span. */
export const LEAST_SECONDS = 0.1;

/** The curve tells how long a step's groups were judged: from the end of the last one that was played. */
export function judgeSpans(steps: readonly StepSummary[], played: readonly PlacedSpan[]): PlacedSpan[] {
  const ends = new Map<number, string>();
  for (const { lane, span } of played)
    if (lane === 'rollout' && span.step !== null && span.endedAt !== null && span.endedAt > (ends.get(span.step) ?? ''))
      ends.set(span.step, span.endedAt);
  return steps.flatMap(({ step, seconds }) => {
    const startedAt = ends.get(step);
    const judged = seconds['judge'] ?? 0;
    if (startedAt === undefined || judged < LEAST_SECONDS) return [];
    const endedAt = new Date(Date.parse(startedAt) + judged * 1000).toISOString();
    const span = { ...ORDINARY, label: `step ${step} · judge`, step, startedAt, endedAt, kind: 'work' } as const;
    return [{ lane: 'judge', span }];
  });
}

/** The pause in which the run is; the store does not keep earlier ones. */
export function pauseSpans(state: Pick<RunState, 'state' | 'pause'> | null): PlacedSpan[] {
  if (state?.state !== 'paused' || state.pause === null) return [];
  const { since, reason } = state.pause;
  const label = `paused${formatReason(reason)}`;
  const span = { ...ORDINARY, label, step: null, startedAt: since, endedAt: null, kind: 'pause' } as const;
  return [{ lane: 'wait', span }];
}

const ORDINARY = { group: null, attempt: 1, host: null, failure: null } as const;
