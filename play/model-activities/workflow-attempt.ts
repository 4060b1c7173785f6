/**
 * An attempt that a workflow of the user's plays, on workers of theirs: what such an agent finds in its rollout's context.
 * `temper-rl/temporal` starts the workflow; its model activities come back here, to the attempt's recorder.
 */
import type { TemperError } from '../../core/contract/failures.ts';
import type { AttemptEndpoint } from '../transports/gateway.ts';

/** Place of an attempt: part of the names of its workflow and of the queue of its model activities. */
interface AttemptAddress {
  readonly storeId: string;
  readonly run: string;
  /** `BRANCH.STEP.GROUP`, or `BRANCH.STEP.eval`. */
  readonly play: string;
}

/** A run that plays attempts. */
export interface PlayingRun {
  readonly address: AttemptAddress;
  /** Somebody plays a discarded attempt again. */
  readonly isPlayedAgain: () => boolean;
}

/** One model activity, as its worker gets it. */
export interface ActivityCall {
  /** Tells activities apart, and is the same whenever one is tried again. */
  readonly id: string;
  readonly type: string;
  readonly input: unknown;
}

/** `away`: the activity is to be tried again, because the attempt is. `refused`: it is not. */
export type ActivityReply = { readonly result: object } | { readonly refused: string } | { readonly away: string };

export interface WorkflowAttempt {
  /** Null outside of a run: nobody plays the attempt again. */
  readonly address: AttemptAddress | null;
  readonly attempt: number;
  readonly limits: {
    readonly attemptTimeoutMs: number;
    readonly callTimeoutMs: number;
    readonly callRetryBudgetMs: number;
  };
  /** Types of the activities that `answer` knows. */
  readonly activityTypes: readonly string[];
  /** For activities that call the model by HTTP: closed with the attempt. */
  readonly endpoint: AttemptEndpoint;
  /** Begins to take calls of one workflow. Resolves once those that it made before are repeated from the journal. */
  begin(workflow: string): Promise<void>;
  answer(call: ActivityCall): Promise<ActivityReply>;
  /** Ends the attempt: it has failed, which is data, or it is discarded. */
  fail(message: string): void;
  abort(error: TemperError): void;
  /** Why the attempt failed before its agent was done; null if it did not. */
  failure(): string | null;
  /** The attempt was discarded, and whoever plays it next takes up its workflow. */
  isTakenUp(): boolean;
  /** Values in the attempt's journal. */
  recall(name: string): unknown;
  record(name: string, value: unknown): void;
  /** Time in which the attempt waits for something that does not answer is not the attempt's. Null: no longer. */
  waitFor(reason: string | null, since: number): void;
}

export type OpenWorkflowAttempt = () => Promise<WorkflowAttempt>;
