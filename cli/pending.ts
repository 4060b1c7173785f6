/** What the server knows of a run and the store does not: activities under way, how often they were tried, and why. */
import { runWorkflowId } from '../core/queues.ts';
import type { TemporalClient } from '../workers/connection.ts';

export interface PendingActivity {
  readonly activity: string;
  readonly attempt: number;
  readonly lastFailure: string | null;
  /** The same as a sentence. */
  readonly text: string;
}

/** Empty where nothing is pending or the server does not answer in time. */
export async function readPending(
  { client }: TemporalClient,
  run: string,
  withinMs: number,
): Promise<PendingActivity[]> {
  try {
    const { raw } = await client.withDeadline(Date.now() + withinMs, () =>
      client.workflow.getHandle(runWorkflowId(run)).describe(),
    );
    return (raw.pendingActivities ?? []).map(describePending);
  } catch {
    return [];
  }
}

interface RawPending {
  readonly activityType?: { readonly name?: string | null } | null;
  readonly attempt?: number | null;
  readonly lastFailure?: { readonly message?: string | null } | null;
  readonly lastStartedTime?: unknown;
}

function describePending({ activityType, attempt, lastFailure, lastStartedTime }: RawPending): PendingActivity {
  const [activity, tries] = [activityType?.name ?? 'activity', attempt ?? 1];
  const failure = lastFailure?.message ?? null;
  const wait = lastStartedTime ? 'under way' : 'waits for a worker';
  const text = `${activity}${tries > 1 ? `, attempt ${tries}` : ''}: ${failure === null ? wait : `last failure: ${failure}`}`;
  return { activity, attempt: tries, lastFailure: failure, text };
}

/** The one reason that a person watching should see: something failed and is tried again. */
export function worstReason(pending: readonly PendingActivity[]): string | null {
  const failing = pending
    .filter(({ lastFailure }) => lastFailure !== null)
    .toSorted((a, b) => b.attempt - a.attempt)[0];
  return failing === undefined ? null : failing.text;
}
