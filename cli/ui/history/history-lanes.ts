/** Lanes of a run from what its executions tell, oldest first. Pure. */
import { REWARDS_SIGNAL } from '../../../core/external-rewards.ts';
import type { LaneSpan, LanesView } from '../../../views/api/run-views.ts';
import { inLanes, type PlacedSpan } from '../../../views/runs/lane-spans.ts';
import { timeOf } from './event-values.ts';
import type { Execution, RunMessage, WorkerSpan } from './execution.ts';

/** Newest ones that are shown: a run that waits for rewards gets a signal for each. */
const MAX_MESSAGES = 500;

export function toLanes(executions: readonly Execution[]): LanesView {
  const messages = executions.flatMap((execution) => execution.messages);
  const spans = [
    ...executions.flatMap((execution) => execution.spans),
    ...pausesIn(messages),
    ...messages.slice(-MAX_MESSAGES).map(viewMessage),
    ...workersOf(executions).map(viewWorker),
  ];
  return { lanes: inLanes(spans), source: 'temporal' };
}

const BASE = { step: null, group: null, attempt: 1, host: null, failure: null } as const;

/** From the update on: the step in progress is finished first. A stop or a rollback ends a pause as well. */
function pausesIn(messages: readonly RunMessage[]): PlacedSpan[] {
  const spans: PlacedSpan[] = [];
  let since: number | null = null;
  const end = (at: number | null) => {
    if (since === null) return;
    const span: LaneSpan = {
      ...BASE,
      label: 'paused',
      startedAt: timeOf(since),
      endedAt: at === null ? null : timeOf(at),
      kind: 'pause',
    };
    spans.push({ lane: 'wait', span });
    since = null;
  };
  for (const { name, at } of messages) {
    if (name === 'pause') since ??= at;
    else if (name === 'resume' || name === 'stop' || name === 'rollback') end(at);
  }
  end(null);
  return spans;
}

function viewMessage({ name, at }: RunMessage): PlacedSpan {
  const label = name === REWARDS_SIGNAL ? 'rewards were given' : name;
  return { lane: 'wait', span: { ...BASE, label, startedAt: timeOf(at), endedAt: timeOf(at), kind: 'message' } };
}

/** A process that worked in several executions is one. */
function workersOf(executions: readonly Execution[]): WorkerSpan[] {
  const seen = new Map<string, WorkerSpan>();
  for (const worker of executions.flatMap((execution) => execution.workers)) {
    const known = seen.get(worker.identity) ?? worker;
    const [from, to] = [Math.min(known.from, worker.from), Math.max(known.to, worker.to)];
    seen.set(worker.identity, { identity: worker.identity, from, to });
  }
  return [...seen.values()];
}

function viewWorker({ identity, from, to }: WorkerSpan): PlacedSpan {
  const host = /^\d+@(.+)$/.exec(identity)?.[1] ?? identity;
  const span: LaneSpan = { ...BASE, label: identity, startedAt: timeOf(from), endedAt: timeOf(to), host, kind: 'work' };
  return { lane: 'worker', span };
}
