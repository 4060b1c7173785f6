/**
 * The queue of one play's model activities, and the worker that polls it while attempts of the play are under way. An
 * activity is answered by the attempt whose workflow asks, or an ancestor of whose workflow is the attempt's.
 */
import { Context } from '@temporalio/activity';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { Worker } from '@temporalio/worker';
import { TemperError } from '../../core/contract/failures.ts';
import type { WorkflowAttempt } from '../../play/model-activities/workflow-attempt.ts';
import { clientOf, type TemporalServer } from './temporal-server.ts';
import { setTimeout as sleep } from 'node:timers/promises';

const BEAT_MS = 2000;
/** Before an activity of a discarded attempt is tried again. */
const AWAY_MS = 1000;
/** Activities at once: more than all attempts of a play have together. */
const CAPACITY = 2000;
const POLLERS = 4;

interface OpenQueue {
  /** Those that use it. */
  readonly attempts: Set<WorkflowAttempt>;
  readonly polling: Promise<Polling>;
}

interface Polling {
  /** Rejects if polling fails. */
  readonly running: Promise<void>;
  close(): Promise<void>;
}

/** Attempts of this process, by the ids of their workflows. */
const attempts = new Map<string, WorkflowAttempt>();
const queues = new Map<string, OpenQueue>();
/** A process polls a queue once: a second worker waits until the first one has ended. */
const closing = new Map<string, Promise<unknown>>();

/** Takes model activities of one workflow from a queue until the returned function is called. */
export async function takeActivities(
  server: TemporalServer,
  queue: string,
  workflowId: string,
  attempt: WorkflowAttempt,
): Promise<() => Promise<void>> {
  const key = `${server.name} ${queue}`;
  const open = queues.get(key) ?? openQueue(key, server, queue);
  open.attempts.add(attempt);
  attempts.set(workflowId, attempt);
  const leave = async (): Promise<void> => {
    if (attempts.get(workflowId) === attempt) attempts.delete(workflowId);
    open.attempts.delete(attempt);
    if (open.attempts.size > 0) return;
    if (queues.get(key) === open) queues.delete(key);
    const closed = open.polling.then((polling) => polling.close());
    closing.set(key, closed);
    await closed.finally(() => closing.delete(key));
  };
  try {
    await open.polling;
  } catch (error) {
    await leave().catch(() => undefined);
    throw error;
  }
  return leave;
}

function openQueue(key: string, server: TemporalServer, queue: string): OpenQueue {
  const earlier = closing.get(key)?.catch(() => undefined) ?? Promise.resolve();
  const open = { attempts: new Set<WorkflowAttempt>(), polling: earlier.then(() => poll(server, queue)) };
  queues.set(key, open);
  const lost = (error: unknown): void => {
    const message = `the model activities of the queue ${queue} cannot be polled: ${String(error)}; the attempt is played again`;
    for (const attempt of open.attempts) attempt.abort(new TemperError('ProgramFailed', message, { cause: error }));
  };
  // One that was never created is reported by who opened it.
  open.polling.then(({ running }) => running.catch(lost)).catch(() => undefined);
  return open;
}

async function poll(server: TemporalServer, taskQueue: string): Promise<Polling> {
  const { connection, namespace, dataConverter } = server;
  const [rootOf, inOrder] = [createRoots(server), createOrder(server)];
  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue,
    activities: { default: (input: unknown) => answerActivity(input, { rootOf, inOrder }) },
    maxConcurrentActivityTaskExecutions: CAPACITY,
    maxConcurrentActivityTaskPolls: POLLERS,
    maxHeartbeatThrottleInterval: BEAT_MS,
    defaultHeartbeatThrottleInterval: BEAT_MS,
    ...(dataConverter && { dataConverter }),
  });
  const running = worker.run();
  return {
    running,
    close() {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      return running;
    },
  };
}

type RootOf = (execution: { workflowId: string; runId: string }) => Promise<string>;

interface Answering {
  readonly rootOf: RootOf;
  readonly inOrder: InOrder;
}

async function answerActivity(input: unknown, { rootOf, inOrder }: Answering): Promise<object> {
  const context = Context.current();
  const beat = setInterval(() => context.heartbeat(), BEAT_MS);
  try {
    const { activityType: type, activityId, workflowExecution } = context.info;
    const { workflowId, runId } = workflowExecution!;
    const attempt = attempts.get(workflowId) ?? attempts.get(await rootOf({ workflowId, runId }));
    if (attempt === undefined) throw away('no attempt of this worker has the workflow');
    await inOrder({ workflowId, runId }, activityId, attempt.activityTypes);
    const reply = await attempt.answer({ id: `${workflowId} ${runId} ${activityId}`, type, input });
    if ('result' in reply) return reply.result;
    throw 'away' in reply ? away(reply.away) : refused(reply.refused);
  } finally {
    clearInterval(beat);
  }
}

/** The first workflow of a tree: children have ids of their own. */
function createRoots(server: TemporalServer): RootOf {
  const client = clientOf(server);
  const roots = new Map<string, Promise<string>>();
  return ({ workflowId, runId }) => {
    const asking = roots.get(runId) ?? client.workflow.getHandle(workflowId, runId).describe().then(rootIn);
    roots.set(runId, asking);
    asking.catch(() => roots.delete(runId));
    return asking;
  };
}

function rootIn({ workflowId, rootExecution }: WorkflowExecutionDescription): string {
  return rootExecution?.workflowId ?? workflowId;
}

function away(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'AttemptAway', message, nextRetryDelay: AWAY_MS });
}

/** Named as `@temporalio/openai-agents` names a request that its model refused. */
function refused(reason: string): ApplicationFailure {
  const message = `Model invocation failed: ${reason}`;
  return ApplicationFailure.nonRetryable(message, 'ModelInvocationError.BadRequest');
}

interface Execution {
  readonly workflowId: string;
  readonly runId: string;
}

/** Resolves once each earlier activity of these types that is still pending has gone on. */
type InOrder = (execution: Execution, activityId: string, types: readonly string[]) => Promise<void>;

/** For an earlier activity whose task is lost with the worker that had it. */
const LONGEST_WAIT_MS = 2000;
const LOOK_MS = 20;

/**
 * The order of model activities that a workflow started together: their tasks arrive in any order, and identical requests
 * are told apart by the order in which they are asked. The server numbers activities as the workflow's code starts them.
 */
function createOrder(server: TemporalServer): InOrder {
  const client = clientOf(server);
  /** Numbers of the activities that went on, by run id. */
  const passed = new Map<string, Set<number>>();
  return async ({ workflowId, runId }, activityId, types) => {
    const number = Number(activityId);
    // A workflow may name its activities itself.
    if (!Number.isSafeInteger(number)) return;
    const before = passed.get(runId) ?? new Set();
    passed.set(runId, before);
    if (number > 1 && !before.has(number - 1)) {
      const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
      const earlier = (raw.pendingActivities ?? [])
        .filter(({ activityType }) => types.includes(activityType?.name ?? ''))
        .map((pending) => Number(pending.activityId))
        .filter((each) => each < number);
      const until = performance.now() + LONGEST_WAIT_MS;
      while (earlier.some((each) => !before.has(each)) && performance.now() < until) await sleep(LOOK_MS);
    }
    before.add(number);
  };
}
