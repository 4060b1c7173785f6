/**
 * The recorder stands between one attempt and the engine. Each call: refuse what breaks training → key and occurrence →
 * journal, or else the engine → check the policy → journal → trajectory → agent. It knows neither wire formats nor
 * clients: `dialects/` translate what an agent asks, `transports/` receive it and call `Recorder.call`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CALL_HEADER, DEADLINE_HEADER } from '../../core/contract/wire-constants.ts';
import type { RolloutConfig } from '../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { CallRecord } from '../../store/records/groups/trajectories.ts';
import type { Completion } from '../connections/completion.ts';
import {
  checkPolicy,
  checkTokens,
  forAgent,
  tagChoices,
  takeRecords,
  type CallFrame,
  type ExpectedPolicy,
} from './answer.ts';
import { callKey, checkRequest, type CheckedRequest, type RequestMode } from './request.ts';
import { AnsweredCalls, type AskedRequest } from './canonical.ts';
import { SYSTEM_CLOCK } from '../connections/clock.ts';
import { AttemptTime, type TimeOptions } from './attempt-time.ts';
import { Ending } from './ending.ts';
import {
  askModel,
  ENGINE_KIND,
  hasOutgrown,
  refusalOf,
  RequestRefused,
  type AnsweredRequest,
  type Asked,
  type AskedModel,
} from '../connections/ask-model.ts';
import type { EngineConnection } from '../connections/engine-connection.ts';
import type { Journal } from './journal.ts';
import { JournaledCalls, type CallTime, type RepeatOptions } from './journaled-calls.ts';
import { OnceValues } from './once.ts';
import { askedOrder, callName, inRecordOrder } from './recorded-calls.ts';
import type { SendLimits } from '../connections/retry-call.ts';
import { ToolCounts } from './tool-counts.ts';
import { Turns } from './turns.ts';

/** How calls are answered: the same for all attempts that are played together. */
export interface Answering extends TimeOptions {
  engine: EngineConnection;
  policy: ExpectedPolicy;
  mode: RequestMode;
  rollout: RolloutConfig;
  /** A replay: its answers are of several models, so neither their policy nor their tokens are checked here. */
  acceptsAnyModel?: boolean;
  /** Rewrites a request before it goes to a hosted model; in `text` mode alone. */
  rewrite?: (body: object) => object;
  /** Called for each call that is answered now: for usage statistics, never part of the trajectory. */
  onAnswer?: (facts: AnswerFacts) => void;
  /** Each choice that the agent sees names its call: for scripts that put choices into trajectories themselves. */
  tagsChoices?: boolean;
}

interface RecorderOptions extends Answering {
  journal: Journal;
  attempt: number;
  /** Names the attempt in the engine's log. */
  attemptKey: string;
  /** The agent calls through its roles alone. */
  hasRoles: boolean;
  seedOf: (key: string, occurrence: number) => number;
}

export interface AnswerFacts {
  attempt: number;
  /** How long the answered try took. */
  ms: number;
  /** The server's usage, unchecked. */
  usage: unknown;
}

export interface CallOptions extends RepeatOptions {
  /** The run's token limit bounds that of the request. */
  boundsTokens?: boolean;
  /** The call comes from a program outside of this process: a request that the engine refuses fails its attempt alone. */
  isOutside?: boolean;
  /** The role that calls, and the policy that plays it. Absent: the agent has no roles. */
  seat?: CallSeat;
}

export interface CallSeat {
  readonly role: string;
  readonly policy: ExpectedPolicy;
}

const LONGEST_REFUSAL_MS = 5000;

export class Recorder {
  readonly ending = new Ending();
  readonly time: AttemptTime;
  readonly toolCounts = new ToolCounts();
  readonly turns: Turns;
  /** A prompt was refused because the model has no room for it: the attempt was cut, though no answer was. */
  hasOutgrown = false;
  /** Calls without an answer yet. */
  #pending = 0;
  #refusals = 0;
  readonly #options: RecorderOptions;
  readonly #values: OnceValues;
  readonly #calls: JournaledCalls<Completion, Completion>;
  readonly #records: CallRecord[] = [];
  readonly #answered = new AnsweredCalls();

  constructor(options: RecorderOptions) {
    this.#options = options;
    const { journal, attempt, clock = SYSTEM_CLOCK, rollout } = options;
    this.#calls = new JournaledCalls({ journal, attempt, ending: this.ending, rollout, noun: 'calls', clock });
    this.time = new AttemptTime(options, this.ending);
    this.#values = new OnceValues(journal, attempt, this.ending);
    this.turns = new Turns(journal.overlap(attempt), (turn) => journal.recordOverlap(attempt, turn));
  }

  get callCount(): number {
    return this.#calls.asked.length;
  }

  get model(): string {
    return this.#options.policy.model;
  }

  get mode(): RequestMode {
    return this.#options.mode;
  }

  get rollout(): RolloutConfig {
    return this.#options.rollout;
  }

  get engineUrl(): string {
    return this.#options.engine.url;
  }

  async once<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
    this.time.checkFresh();
    return this.#values.once(name, fn);
  }

  /** The agent is done. An attempt that ended while a call waited for an unavailable engine is discarded. */
  close(): Promise<void> {
    const { reason } = this.time.outage;
    if (reason !== null) this.ending.abort(abandoned(reason));
    this.ending.close();
    return this.#values.settle();
  }

  /** Names of the calls that the agent asked for. */
  get asked(): readonly string[] {
    return this.#calls.asked;
  }

  /** Recorded calls, in an order that does not depend on timing. */
  takeCalls(): CallRecord[] {
    return inRecordOrder(this.#records);
  }

  /** How often each of these roles was answered. */
  countCalls(roles: readonly string[]): Record<string, number> {
    return Object.fromEntries(roles.map((name) => [name, this.#records.filter(({ role }) => role === name).length]));
  }

  /** See `askedOrder` of recorded calls. */
  askedOrder(): number[] {
    return askedOrder(this.#records, this.#calls.asked);
  }

  /** Times of the calls in that order; null for an answer that came from the journal. */
  askedTimes(): (CallTime | null)[] {
    const calls = this.takeCalls();
    return this.askedOrder().map((index) => this.#calls.times.get(callName(calls[index]!)) ?? null);
  }

  /**
   * One call of the agent; resolves to the completion as the agent may see it. Rejects with `RequestRefused` if the agent
   * may handle the refusal itself, with a TemperError if the attempt is over, or with the agent's own abort.
   */
  async call(asked: AskedRequest, options: CallOptions = {}): Promise<Completion> {
    const { signal = null } = options;
    this.#pending += 1;
    try {
      this.ending.check();
      return await this.#answer(asked, options);
    } catch (error) {
      if (isForAgent(error, signal)) throw error;
      const wrong = options.isOutside === true ? refusedByEngine(error) : null;
      throw await (wrong === null ? this.refuse(error) : this.fail(wrong));
    } finally {
      this.#pending -= 1;
    }
  }

  /**
   * Ends the attempt because of a call that cannot be answered, and returns the error to show. Transports use it for
   * requests that they cannot read. Slower each time: an agent that keeps asking must not keep the worker busy.
   */
  async refuse(error: unknown): Promise<TemperError> {
    const typed = asTemperError(error);
    if (typed.type !== 'AgentFailed') this.ending.abort(typed);
    this.#refusals += 1;
    await sleep(Math.min(2 ** this.#refusals, LONGEST_REFUSAL_MS), undefined, { ref: false });
    return typed;
  }

  /** The agent broke a rule, which is data; returns the error to show. */
  fail(message: string): Promise<TemperError> {
    this.ending.failAs(message);
    return this.refuse(new TemperError('AgentFailed', message));
  }

  /** Throws what `call` would refuse before it asks anybody. */
  check(asked: AskedRequest, { boundsTokens = false, seat }: CallOptions): CheckedRequest {
    const { rollout, mode } = this.#options;
    const policy = this.#policyOf(seat);
    return checkRequest(asked, { model: policy.model, mode, rollout, answered: this.#answered, boundsTokens });
  }

  #policyOf(seat: CallSeat | undefined): ExpectedPolicy {
    if (seat !== undefined) return seat.policy;
    if (!this.#options.hasRoles) return this.#options.policy;
    throw badConfig(
      'an agent with roles must call the client of a role, got a call of context.openai, context.fetch or context.baseURL; call roles.NAME.openai',
    );
  }

  #answer(asked: AskedRequest, options: CallOptions): Promise<Completion> {
    const { rollout: times, onAnswer, attempt } = this.#options;
    const { request, wantsLogprobs } = this.check(asked, options);
    const policy = this.#policyOf(options.seat);
    const role = options.seat?.role;
    let answeredInMs: number | null = null;
    return this.#calls.answer({
      key: callKey(request, options.label ?? null, role),
      ...(role !== undefined && { role }),
      request,
      options,
      begin: (frame) => this.turns.begin(callName(frame), this.#pending - 1),
      send: async (frame) => {
        const [body, headers] = [this.#body(frame, policy), this.#headers(frame)];
        const ask = (limits: SendLimits) => askModel(this.#engine, body, { limits, times, headers });
        const { completion: answer, text, ms } = this.#readAsked(await this.time.send(options.signal ?? null, ask));
        answeredInMs = ms;
        return { answer, text };
      },
      accept: (completion, frame) => {
        const records = this.#checkAnswer(completion, frame, policy);
        return () => {
          this.#records.push(...records);
          this.#answered.keep(completion);
          this.toolCounts.add(frame.request, completion);
          if (answeredInMs !== null) onAnswer?.({ attempt, ms: answeredInMs, usage: completion['usage'] });
          return this.#show(completion, frame, wantsLogprobs);
        };
      },
    });
  }

  get #engine(): AskedModel {
    const { engine: connection } = this.#options;
    return { kind: ENGINE_KIND, connection, title: `the engine at ${connection.url}` };
  }

  #readAsked(asked: Asked): AnsweredRequest {
    if ('failure' in asked) {
      const failure = `the engine ${asked.failure}`;
      this.ending.failAs(failure);
      throw new TemperError('AgentFailed', failure);
    }
    if (!('refused' in asked)) return asked;
    const { status, error } = asked.refused;
    if (!hasOutgrown({ ...error, status })) throw refusalOf(this.#engine, asked);
    this.hasOutgrown = true;
    throw new RequestRefused(status, error);
  }

  #checkAnswer(completion: Completion, frame: CallFrame, policy: ExpectedPolicy): CallRecord[] {
    const { mode, engine, acceptsAnyModel = false } = this.#options;
    const records = takeRecords(completion, frame);
    if (mode !== 'text' && !acceptsAnyModel) {
      checkPolicy(completion, policy);
      checkTokens(records, engine.url);
    }
    return records;
  }

  #show(completion: Completion, frame: CallFrame, wantsLogprobs: boolean): Completion {
    const visible = this.turns.mark(forAgent(completion, wantsLogprobs), frame);
    return this.#options.tagsChoices === true ? tagChoices(visible, callName(frame)) : visible;
  }

  #body({ request, key, occurrence }: CallFrame, policy: ExpectedPolicy): string {
    const { mode } = this.#options;
    const asked = { ...request, model: policy.model };
    if (mode === 'text') return JSON.stringify(this.#options.rewrite?.(asked) ?? asked);
    // A seed that stands in the request is the agent's own: evaluations honour it, training refused it.
    return JSON.stringify({
      seed: this.#options.seedOf(key, occurrence),
      ...asked,
      logprobs: true,
      return_token_ids: true,
    });
  }

  #headers({ key, occurrence }: CallFrame): Record<string, string> {
    const { mode, attemptKey, rollout } = this.#options;
    if (mode === 'text') return {};
    return {
      [CALL_HEADER]: `${attemptKey}/${key}/${occurrence}`,
      [DEADLINE_HEADER]: String(rollout.callTimeoutMs),
    };
  }
}

/** True if the agent aborted the call itself or may handle its error; any other error ends the attempt. */
export function isForAgent(error: unknown, signal: AbortSignal | null): boolean {
  return error instanceof RequestRefused || (!(error instanceof TemperError) && signal?.aborted === true);
}

/** Its words; null for what is no fault of the request. */
function refusedByEngine(error: unknown): string | null {
  const cause = error instanceof TemperError ? error.cause : null;
  return cause instanceof RequestRefused ? cause.message : null;
}

function abandoned(reason: string): TemperError {
  return new TemperError('EngineFailed', `the agent went on while a call waited for the engine (${reason})`);
}

function asTemperError(error: unknown): TemperError {
  if (error instanceof TemperError) return error;
  return new TemperError('EngineFailed', `a call failed unexpectedly: ${String(error)}`, { cause: error });
}
