import { TemperError } from '../../core/contract/failures.ts';
import { ACTIVITY_DIALECTS, ActivityCalls } from './activity-calls.ts';
import type { Journal } from '../recorder/journal.ts';
import type { Recorder } from '../recorder/recorder.ts';
import { gateway } from '../transports/gateway.ts';
import { createAnswerer, createRequestHandler } from '../transports/gateway-calls.ts';
import type { ActivityCall, ActivityReply, PlayingRun, WorkflowAttempt } from './workflow-attempt.ts';

export interface WorkflowAttemptOptions {
  /** Null outside of a run. */
  readonly run: PlayingRun | null;
  readonly attempt: number;
  readonly recorder: Recorder;
  readonly journal: Journal;
  readonly log: (line: string) => void;
  readonly isFresh: () => boolean;
}

/** Before names that are no agent's. */
const PREFIX = '\0workflow ';

export async function openWorkflowAttempt(options: WorkflowAttemptOptions): Promise<WorkflowAttempt> {
  const { run, attempt, recorder, journal, log, isFresh } = options;
  const { ending, rollout } = recorder;
  const calling = { recorder, log, rewrite: null, takesResult: false };
  const endpoint = await gateway.open(createRequestHandler(calling));
  const values = {
    recall: (name: string) => journal.value(attempt, PREFIX + name),
    record(name: string, value: unknown) {
      if (!isFresh()) throw stale(recorder);
      journal.recordValue(attempt, PREFIX + name, JSON.stringify(value));
    },
  };
  let calls: ActivityCalls | null = null;
  let isWaiting = false;
  return {
    address: run?.address ?? null,
    attempt,
    limits: rollout,
    activityTypes: Object.keys(ACTIVITY_DIALECTS),
    endpoint,
    begin(workflow) {
      calls = new ActivityCalls(createAnswerer(calling), values, workflow);
      return calls.restored;
    },
    answer: (call) => answer(calls, call, recorder),
    fail: (message) => ending.failAs(message),
    abort: (error) => ending.abort(error),
    failure: () => ending.failure?.message ?? null,
    isTakenUp: () => ending.abortReason?.retryable === true && run?.isPlayedAgain() === true,
    ...values,
    waitFor(reason, since) {
      if (reason === null) {
        if (isWaiting) recorder.time.outage.ended();
      } else if (isWaiting) recorder.time.outage.goesOn(reason, 0);
      else recorder.time.outage.began(reason, since, 'the workflow');
      isWaiting = reason !== null;
    },
  };
}

async function answer(calls: ActivityCalls | null, call: ActivityCall, { ending }: Recorder): Promise<ActivityReply> {
  if (calls === null) return { away: 'the attempt has not begun' };
  try {
    return { result: await calls.answer(call) };
  } catch (error) {
    // A discarded attempt is played again, and the activity is tried until then.
    if (ending.abortReason !== null) return { away: ending.abortReason.message };
    return { refused: error instanceof Error ? error.message : String(error) };
  }
}

function stale({ ending }: Recorder): TemperError {
  const error = new TemperError('StaleAttempt', 'this process was suspended; the attempt is retried');
  ending.abort(error);
  return error;
}
