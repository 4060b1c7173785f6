/** State of a run with the server's pending activities, because the store is updated only once per step and evaluation. */
import type { RunState } from '../../core/contract/contract.ts';
import type { PendingActivity } from './pending-activity.ts';

interface Work {
  readonly phase: RunState['phase'];
  readonly words: string;
}

/** Phase and description of each activity. */
const WORK: Readonly<Record<string, Work>> = {
  prepare: { phase: 'prepare', words: 'read the agent' },
  initialise: { phase: 'initialise', words: 'make checkpoint 0' },
  evaluate: { phase: 'eval', words: 'evaluate the policy' },
  rollout: { phase: 'rollout', words: 'play a step' },
  judgeGroup: { phase: 'rollout', words: 'judge a group' },
  judgeGiven: { phase: 'judge', words: 'read given rewards' },
  judge: { phase: 'judge', words: 'decide what a step trains' },
  train: { phase: 'train', words: 'train a step' },
};

interface Seen {
  readonly state: RunState['state'] | 'starting';
  readonly phase: RunState['phase'] | null;
  readonly waitingFor: string | null;
}

const MOVING: ReadonlySet<string> = new Set(['starting', 'running', 'pausing', 'stopping']);

/** Unchanged if nothing is pending, or if what is pending belongs to the recorded phase. */
export function withPending<T extends Seen>(seen: T, pending: readonly PendingActivity[]): T {
  const current = pending.find(({ activity }) => Object.hasOwn(WORK, activity));
  const work = current === undefined ? undefined : WORK[current.activity];
  if (current === undefined || work === undefined || work.phase === seen.phase || !MOVING.has(seen.state)) return seen;
  const queue = current.queue === null ? '' : ` on queue ${current.queue}`;
  const since = current.since === null ? '' : `, since ${current.since}`;
  return { ...seen, phase: work.phase, waitingFor: `${work.words}${queue}${since}` };
}

export interface Wait {
  /** Constant while it lasts. */
  readonly reason: string;
  /** With the number of its attempt, once it has failed more than once. */
  readonly text: string;
  readonly hasFailed: boolean;
}

/** Most urgent wait: a failure that is retried, or a missing worker. */
export function worstWait(pending: readonly PendingActivity[]): Wait | null {
  const kept = pending.filter(({ reason }) => reason !== null).toSorted((a, b) => b.attempt - a.attempt);
  const worst = kept.find(({ lastFailure }) => lastFailure !== null) ?? kept[0];
  if (worst === undefined) return null;
  const { activity, attempt, lastFailure } = worst;
  const tried = lastFailure !== null && attempt > 2 ? `, attempt ${attempt}` : '';
  return {
    reason: `${activity}: ${worst.reason}`,
    text: `${activity}${tried}: ${worst.reason}`,
    hasFailed: tried !== '',
  };
}
