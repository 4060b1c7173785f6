/** The workflow of one attempt: started once, taken up after a kill, and ended with the attempt. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowFailedError, type Client, type WorkflowHandle } from '@temporalio/client';
import { TimeoutFailure, WorkflowNotFoundError } from '@temporalio/common';
import { attemptWorkflowId, modelQueue } from '../../core/names/queues.ts';
import { TemperError } from '../../core/contract/failures.ts';
import type { Scenario } from '../../play/agent.ts';
import type { WorkflowAttempt } from '../../play/model-activities/workflow-attempt.ts';
import { addHeaders, routeHeaders } from './headers.ts';
import type { ModelAddress, WorkflowAgentOptions } from './options.ts';
import { answered, clientOf, type Patience, type TemporalServer } from './temporal-server.ts';
import { findWaiting } from './waiting.ts';

/** A workflow that was started for the attempt, as the journal keeps it. */
interface Started {
  /** In the workflow's memo: an older workflow may have the same id. */
  readonly nonce: string;
  /** Its activities were given an address that ends with this process: another process starts it anew. */
  readonly usesHttp: boolean;
}

const WATCH_MS = 2000;
/** For what a cancelled workflow has to clean up. */
const CANCEL_GRACE_MS = 5000;
/** Ends a workflow that nobody is left to end. After a longer outage the attempt has a new one, answered from the journal. */
const LONGEST_OUTAGE_MS = 24 * 3_600_000;

export interface NamedWorkflow {
  readonly workflowId: string;
  readonly queue: string;
}

/** Outside of a run no attempt is played again, and each has a name of its own. */
export function nameWorkflow({ address, attempt }: WorkflowAttempt): NamedWorkflow {
  const { storeId, run, play } = address ?? { storeId: 'single', run: randomUUID(), play: 'attempt' };
  return { workflowId: attemptWorkflowId(storeId, run, `${play}.${attempt}`), queue: modelQueue(storeId, run, play) };
}

export interface AttemptWorkflowOptions<S extends Scenario> {
  readonly options: WorkflowAgentOptions<S>;
  readonly scenario: S;
  readonly model: string;
  readonly attempt: WorkflowAttempt;
  readonly server: TemporalServer;
  readonly named: NamedWorkflow;
  readonly signal: AbortSignal;
}

export class AttemptWorkflow<S extends Scenario> {
  readonly #given: AttemptWorkflowOptions<S>;
  readonly #client: Client;
  readonly #patience: Patience;
  /** Null before it is started. */
  #nonce: string | null = null;
  #firstRunId = '';
  #hasEnded = false;

  constructor(given: AttemptWorkflowOptions<S>) {
    this.#given = given;
    const { attempt, server, signal } = given;
    this.#client = clientOf(server);
    this.#patience = { name: server.name, signal, onSilence: (reason) => attempt.waitFor(reason, Date.now()) };
  }

  get client(): Client {
    return this.#client;
  }

  get nonce(): string {
    return this.#nonce ?? '';
  }

  get firstRunId(): string {
    return this.#firstRunId;
  }

  get handle(): WorkflowHandle {
    return this.#client.workflow.getHandle(this.#given.named.workflowId);
  }

  /** Asks the server until it answers. */
  ask<T>(ask: () => Promise<T>): Promise<T> {
    return answered(ask, this.#patience);
  }

  /** Starts the workflow, or takes up the one that an earlier try of the attempt has started. */
  async begin(): Promise<void> {
    const { attempt } = this.#given;
    const [index, last] = this.#lastStarted();
    if (last !== null && !last.usesHttp && (await this.#takeUp(last))) {
      await attempt.begin(last.nonce);
      const failure = attempt.recall(`failure ${last.nonce}`);
      if (typeof failure === 'string') attempt.fail(failure);
      return;
    }
    await this.#start(index);
  }

  #lastStarted(): [number, Started | null] {
    let last: Started | null = null;
    for (let index = 0; ; index += 1) {
      const next = this.#given.attempt.recall(`started ${index}`) as Started | undefined;
      if (next === undefined) return [index, last];
      last = next;
    }
  }

  /** False where the workflow is not there, is another one, or ran into its own deadline. */
  async #takeUp({ nonce }: Started): Promise<boolean> {
    const described = await this.ask(() =>
      this.handle.describe().catch((error: unknown) => {
        if (error instanceof WorkflowNotFoundError) return null;
        throw error;
      }),
    );
    const memo = described?.memo?.['temper'] as { nonce?: unknown } | undefined;
    if (described === null || memo?.nonce !== nonce || described.status.name === 'TIMED_OUT') return false;
    this.#nonce = nonce;
    this.#firstRunId = described.raw.workflowExecutionInfo?.firstRunId || described.runId;
    return true;
  }

  async #start(index: number): Promise<void> {
    const { options, scenario, attempt, named, server } = this.#given;
    const { workflow, taskQueue, args, memo, headers } = options;
    const { address, isUsedIn } = this.#modelAddress();
    const given = args?.(scenario, address) ?? [scenario];
    const fields = memo?.(scenario, address) ?? {};
    const own = headers?.(scenario, address) ?? {};
    const nonce = randomUUID();
    const started: Started = { nonce, usesHttp: isUsedIn([given, fields, own]) };
    attempt.record(`started ${index}`, started);
    await attempt.begin(nonce);
    const client = clientOf(server, [addHeaders(this.#headers(own))]);
    const { run } = attempt.address ?? { run: null };
    const handle = await this.ask(() =>
      client.workflow.start(workflow, {
        workflowId: named.workflowId,
        taskQueue,
        args: [...given],
        memo: { ...fields, temper: { run, attempt: attempt.attempt, nonce } },
        // One that is there has the same name, and is of an attempt that nobody plays any more.
        workflowIdConflictPolicy: 'TERMINATE_EXISTING',
        workflowExecutionTimeout: attempt.limits.attemptTimeoutMs + LONGEST_OUTAGE_MS,
        staticSummary:
          run === null ? 'an attempt' : `attempt ${attempt.attempt} of ${attempt.address?.play} of the run ${run}`,
      }),
    );
    this.#nonce = nonce;
    this.#firstRunId = handle.firstExecutionRunId;
  }

  #modelAddress(): { address: ModelAddress; isUsedIn: (values: unknown) => boolean } {
    const { attempt, model } = this.#given;
    const { origin, key } = attempt.endpoint;
    let isUsed = false;
    const use = (text: string): string => {
      isUsed = true;
      return text;
    };
    const address = {
      get baseURL() {
        return use(`${origin}/v1`);
      },
      get apiKey() {
        return use(key);
      },
      model,
    };
    const isUsedIn = (values: unknown): boolean => {
      // An address that is handed on as a whole is read where it is written.
      JSON.stringify(values, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
      return isUsed;
    };
    return { address, isUsedIn };
  }

  #headers(own: Readonly<Record<string, unknown>>) {
    const { options, attempt, named } = this.#given;
    const { rerouteActivities = [], sandboxQueue = `${options.taskQueue}-sandbox`, modelParams = {} } = options;
    const rerouted =
      rerouteActivities.length === 0 ? null : { activities: rerouteActivities, options: { taskQueue: sandboxQueue } };
    const { limits, activityTypes } = attempt;
    return routeHeaders({ queue: named.queue, activityTypes, limits, modelParams, rerouted, headers: own });
  }

  /** Rejects with an Error whose message is data where the workflow failed. */
  async result(): Promise<unknown> {
    const { server, signal } = this.#given;
    const watching = new AbortController();
    const watch = this.#watch(AbortSignal.any([signal, watching.signal]));
    try {
      const { connection } = server;
      const result: unknown = await this.ask(() => connection.withAbortSignal(signal, () => this.handle.result()));
      this.#hasEnded = true;
      return result;
    } catch (error) {
      if (!(error instanceof WorkflowFailedError)) throw error;
      this.#hasEnded = true;
      throw this.#readFailure(error);
    } finally {
      watching.abort();
      await watch;
    }
  }

  #readFailure({ cause }: WorkflowFailedError): Error {
    const { workflow } = this.#given.options;
    if (cause instanceof TimeoutFailure)
      return new TemperError(
        'ProgramFailed',
        `the workflow ${workflow} of an attempt ran out of its time; it is started again`,
      );
    return new WorkflowFailed(`${workflow}: ${rootMessage(cause)}`);
  }

  /** Says what the workflow waits for, until `signal`. */
  async #watch(signal: AbortSignal): Promise<void> {
    const { attempt } = this.#given;
    while (!signal.aborted) {
      await sleep(WATCH_MS, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) break;
      const described = await this.handle.describe().catch(() => null);
      if (described === null || signal.aborted) continue;
      const waiting = findWaiting(described, attempt.activityTypes, Date.now());
      attempt.waitFor(waiting?.reason ?? null, waiting?.since ?? 0);
    }
    attempt.waitFor(null, 0);
  }

  /** Leaves no workflow behind: cancels it, and terminates it where that does not end it. */
  async end(): Promise<void> {
    const { attempt } = this.#given;
    if (this.#nonce === null || this.#hasEnded || attempt.isTakenUp()) return;
    const failure = attempt.failure();
    if (failure !== null) attempt.record(`failure ${this.#nonce}`, failure);
    const { handle } = this;
    await handle.cancel();
    const ended = handle.result().then(
      () => true,
      (error: unknown) => error instanceof WorkflowFailedError,
    );
    if (await Promise.race([ended, sleep(CANCEL_GRACE_MS, false, { ref: false })])) return;
    await handle.terminate('the attempt is over');
  }
}

/** The failure of a user's workflow: the attempt has failed. */
class WorkflowFailed extends Error {
  override readonly name = 'WorkflowFailed';
}

/** Frames in between only say that an activity or a child failed. */
function rootMessage(cause: unknown): string {
  if (!(cause instanceof Error)) return 'it failed';
  return cause.cause instanceof Error ? rootMessage(cause.cause) : `${cause.name}: ${cause.message}`;
}
