/** The frame of all activities: the check on entry, a heartbeat every second, typed failures. */
import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory, CancelledFailure } from '@temporalio/common';

import type { z } from 'zod';

import { RESUME_GRACE_MS } from '../core/contract/wire-constants.ts';
import { firstIssue, isFromLaterVersion } from '../core/contract/contract.ts';
import { badConfig, TemperError } from '../core/contract/failures.ts';
import type { Dependencies } from './dependencies.ts';

export interface Scope {
  /** Aborted by cancellation and by the worker's shutdown. */
  readonly signal: AbortSignal;
  /** Nobody does this activity again: its workflow, or a person, has cancelled it. */
  readonly isCancelled: () => boolean;
  /** False once this process was suspended, or cut off from Temporal, so long that another may have the activity. */
  readonly isFresh: () => boolean;
  /** Throws StaleAttempt where it is not. */
  readonly checkFresh: () => void;
  /** Which try of the activity this is, from 1: for times and logs alone. */
  readonly attempt: number;
  /** Temporal's id of the workflow's execution that asked. */
  readonly asker: string;
  /** Asked for with every heartbeat; people see it in Temporal's UI. */
  showDetail(detail: () => unknown): void;
}

const BEAT_MS = 1000;
/** Temporal keeps 4 KiB of a failure's text. */
const MAX_MESSAGE = 2000;
/** A provider that says "tomorrow" is asked again within the hour all the same. */
const LONGEST_RETRY_MS = 3_600_000;

/**
 * The only way into an activity. Whoever reaches the task queue may hand one anything: what is not of the contract is
 * refused before it has any effect.
 */
export function asActivity<I, O>(
  dependencies: Dependencies,
  schema: z.ZodType<I>,
  act: (input: I, scope: Scope) => Promise<O>,
): (input: I) => Promise<O> {
  return async (input) => {
    const context = Context.current();
    const { scope, stop } = openScope(context, dependencies);
    try {
      checkEntry(context, dependencies);
      return await act(parseInput(schema, input, context), scope);
    } catch (error) {
      // An error after a cancellation is reported as the cancellation.
      if (scope.signal.aborted) throw describeEnd(scope.signal.reason);
      throw error instanceof TemperError ? toApplicationFailure(error) : error;
    } finally {
      stop();
    }
  };
}

function parseInput<I>(schema: z.ZodType<I>, input: unknown, { info }: Context): I {
  const { data, error } = schema.safeParse(input);
  if (error === undefined) return data;
  if (isFromLaterVersion(error, input))
    throw new TemperError(
      'LaterVersion',
      `the input of the activity ${info.activityType} was sent by a later version of Temper (${firstIssue(error)}); upgrade this worker: Temporal retries until a worker of that version takes the activity`,
    );
  throw badConfig(
    `the input of the activity ${info.activityType} must follow the contract of this version of Temper, but does not (${firstIssue(error)}); start runs with temper, and run one version of it on all hosts`,
  );
}

function toApplicationFailure(error: TemperError): ApplicationFailure {
  return ApplicationFailure.create({
    message: error.message.slice(0, MAX_MESSAGE),
    type: error.type,
    nonRetryable: !error.retryable,
    // Asked to stay away, the next try does; an agent file may bring an older copy of the class, without the field.
    ...(error.retryAfterMs ? { nextRetryDelay: Math.min(error.retryAfterMs, LONGEST_RETRY_MS) } : {}),
    ...(error.cause instanceof Error ? { cause: error.cause } : {}),
  });
}

/** A retry of a write-once object must bring the same inputs as the write that won. */
export function checkInputs(what: string, recorded: string, asked: string): void {
  if (recorded === asked) return;
  const rule = `${what} is already in the store, made from inputs ${recorded}, but was requested from inputs ${asked}`;
  throw new TemperError('StepConflict', `${rule}; start the run under another name`);
}

/** A worker that goes away cancels nothing: another one takes its activities. */
function describeEnd(reason: unknown): unknown {
  if (!(reason instanceof CancelledFailure) || reason.message !== 'WORKER_SHUTDOWN') return reason;
  const message = 'the worker is shutting down; the activity continues on another worker';
  return ApplicationFailure.create({ type: 'WorkerShutdown', message, category: ApplicationFailureCategory.BENIGN });
}

/** Other reasons are those of this process, or of its place in time: another one has the activity by then. */
function isCancellation(reason: unknown): boolean {
  return reason instanceof CancelledFailure && reason.message === 'CANCELLED';
}

function openScope(context: Context, dependencies: Dependencies): { scope: Scope; stop: () => void } {
  const { clock = Date.now, pauses, contact } = dependencies;
  const startedAt = clock();
  const limitMs = context.info.heartbeatTimeoutMs ?? Infinity;
  let shown: (() => unknown) | null = null;
  const timer = setInterval(() => context.heartbeat(shown?.() ?? null), BEAT_MS);
  const isFresh = (): boolean =>
    pauses.longestPauseMs(startedAt) < limitMs && (contact?.silenceMs(startedAt) ?? 0) < limitMs;
  const scope: Scope = {
    signal: context.cancellationSignal,
    isCancelled: () => isCancellation(context.cancellationSignal.reason),
    isFresh,
    checkFresh: () => {
      if (!isFresh())
        throw new TemperError(
          'StaleAttempt',
          'this process was suspended, or was cut off from Temporal; another worker takes over its work',
        );
    },
    attempt: context.info.attempt,
    asker: context.info.workflowExecution?.runId ?? '',
    showDetail: (detail) => void (shown = detail),
  };
  return { scope, stop: () => clearInterval(timer) };
}

/**
 * A suspended worker that was idle still gets tasks, and starts them when it resumes. The SDK does not tell when a task
 * was assigned, and one may wait in its queue for long: only an old task and a recent pause of the process together are
 * a sign. The server's clock set the task's time; a host whose clock is behind does not see the age, so tasks that begin
 * right after a pause are refused too. A clock that is ahead refuses nothing alone.
 */
function checkEntry({ info }: Context, dependencies: Dependencies): void {
  const { clock = Date.now, pauses } = dependencies;
  const limitMs = info.heartbeatTimeoutMs ?? Infinity;
  const ageMs = clock() - info.currentAttemptScheduledTimestampMs;
  const withinMs = ageMs >= limitMs ? limitMs : RESUME_GRACE_MS;
  if (pauses.longestPauseMs(clock() - withinMs) < limitMs) return;
  const rule = `an activity must start within its heartbeat timeout of ${limitMs} ms`;
  throw new TemperError(
    'StaleAttempt',
    `${rule}, this one was scheduled ${ageMs} ms ago and this process was suspended; Temporal retries the activity`,
  );
}
