/**
 * Plays many attempts at once, each with a recorder of its own, one journal for all. Knows nothing of Temporal: the
 * activities play through it, and so does an evaluation of any other model.
 */
import { setMaxListeners } from 'node:events';
import pLimit from 'p-limit';

import { TemperError, type FailureType } from '../core/contract/failures.ts';
import { callSeed, deriveSeed } from '../core/numbers/seeds.ts';
import type { JournalSegments } from '../store/store.ts';
import type { AttemptRecord } from '../store/records/groups/trajectories.ts';
import type { Scenario } from './agent.ts';
import { placeOfThrow } from './place-of-throw.ts';
import { playAttempt, type SharedOptions } from './play-attempt.ts';
import { agentProgram } from './programs/program.ts';
import { slotsOf } from './programs/program-slots.ts';
import { Journal } from './recorder/journal.ts';
import type { CallTime } from './recorder/journaled-calls.ts';
import { ENGINE, SYSTEM_CLOCK, type OutageClock } from './connections/clock.ts';
import { playersOutside, type RolePlayers } from './roles/role-definition.ts';
import { Recorder, type Answering } from './recorder/recorder.ts';
import {
  openResources,
  type AttemptResources,
  type PlaceOptions,
  type PlaceResources,
  type ResourcesProgress,
} from './resources/place-resources.ts';
import { withTurns, type PlayedTurns } from './recorder/turns.ts';

export interface PlannedAttempt {
  attempt: number;
  /** Its index among the run's scenarios: part of every seed. */
  scenarioIndex: number;
  scenario: Scenario;
  /** Players of the agent's roles. Absent without roles, and where the one policy plays them all. */
  players?: RolePlayers;
}

export interface AttemptsOptions extends Answering, SharedOptions, Pick<PlaceOptions, 'resources' | 'leasePlace'> {
  planned: readonly PlannedAttempt[];
  /** At most so many are played at once. */
  concurrency: number;
  segments: JournalSegments;
  place: { seed: number; branch: number; step: number };
  /** Names an attempt in the engine's log. */
  attemptKey: (attempt: number) => string;
  /** Ends everything; its reason is not looked at. */
  signal: AbortSignal;
  /** Told of each attempt's recorder before the attempt begins. */
  onRecorder?: (attempt: number, recorder: Recorder) => void;
}

/** When an attempt was played last, and its calls in the order of `callOrders`, in milliseconds since 1970. */
export interface AttemptTimes {
  startedAt: number;
  endedAt: number;
  /** Null for an answer that came from the journal: the call was made when the attempt was played before. */
  calls: (CallTime | null)[];
  /** `agent.ts:12:5`: the line that threw. Absent if none did, or it is not in the agent's folder. */
  thrownAt?: string;
}

/** Attempts that wait for an engine, or for what else does not answer, and the newest reason. */
interface EngineWait {
  attempts: number;
  /** Named in messages; absent: the engine. */
  awaited?: string;
  reason: string;
  /** ISO 8601. */
  since: string;
  nextTryAt: string | null;
}

export interface AttemptsProgress {
  done: number;
  of: number;
  calls: number;
  /** Null where no attempt waits for the engine. */
  waiting: EngineWait | null;
  /** Attempts whose resources are set up or ended now; absent if there are none. */
  resources?: ResourcesProgress;
}

/** Failures of one attempt that others, which play already, may come through. */
const OUTAGES: ReadonlySet<FailureType> = new Set(['EngineFailed', 'ProgramFailed', 'ResourceFailed']);

export class Attempts {
  readonly #options: AttemptsOptions;
  readonly #journal: Journal;
  readonly #playing = new Set<Recorder>();
  readonly #resources: PlaceResources | null;
  /** Set once no further attempt is begun. */
  #ended: unknown = null;
  /** Aborted with it. */
  readonly #over = new AbortController();
  readonly #orders = new Map<number, number[]>();
  readonly #times = new Map<number, AttemptTimes>();
  readonly #thrownAt = new Map<number, Pick<AttemptTimes, 'thrownAt'>>();
  readonly #turns = new Map<number, PlayedTurns>();
  #done = 0;
  #callsDone = 0;

  constructor(options: AttemptsOptions) {
    this.#options = options;
    this.#journal = new Journal(options.segments);
    // One for each attempt that waits for a place.
    setMaxListeners(0, this.#over.signal);
    this.#resources = openResources(options, this.#over.signal);
  }

  /**
   * In the order of `planned`; throws the abort reason of the first discarded attempt. Where that was an outage, of the
   * engine or of a program, those that play go on as far as they come: what they are answered is in the journal, and
   * not paid for again. Otherwise all end at once.
   */
  async play(): Promise<AttemptRecord[]> {
    const { signal, planned, concurrency } = this.#options;
    const cancel = (): void => this.#endAll(new TemperError('EngineFailed', 'the attempt was cancelled'));
    signal.addEventListener('abort', cancel);
    if (signal.aborted) cancel();
    const limit = pLimit(concurrency);
    let attempts: Promise<AttemptRecord>[] = [];
    try {
      await this.#resources?.begin();
      attempts = planned.map((one) => limit(() => this.#playWithSlot(one)));
      return withTurns(await Promise.all(attempts), (attempt) => this.turnsOf(attempt));
    } catch (error) {
      await Promise.allSettled(attempts);
      throw error;
    } finally {
      await this.#resources?.close();
      signal.removeEventListener('abort', cancel);
      this.#journal.close();
    }
  }

  progress(): AttemptsProgress {
    const resources = this.#resources?.progress() ?? null;
    return {
      done: this.#done,
      of: this.#options.planned.length,
      calls: [...this.#playing].reduce((calls, { callCount }) => calls + callCount, this.#callsDone),
      waiting: describeWait([...this.#playing].map(({ time }) => time.outage)),
      ...(resources && { resources }),
    };
  }

  /** Calls of each attempt, as indices in the order in which the agent asked; see `Recorder.askedOrder`. */
  callOrders(): Record<number, number[]> {
    return Object.fromEntries(this.#orders);
  }

  times(): Record<number, AttemptTimes> {
    return Object.fromEntries(this.#times);
  }

  /** Null for an attempt that did not come to its end. */
  turnsOf(attempt: number): PlayedTurns | null {
    return this.#turns.get(attempt) ?? null;
  }

  #beginNone(error: unknown): void {
    this.#ended ??= error;
    this.#over.abort();
  }

  #endAll(error: unknown): void {
    this.#beginNone(error);
    const reason = error instanceof TemperError ? error : new TemperError('EngineFailed', String(error));
    for (const { ending } of this.#playing) ending.abort(reason);
  }

  #stopAfter(error: unknown): void {
    if (error instanceof TemperError && OUTAGES.has(error.type)) this.#beginNone(error);
    else this.#endAll(error);
  }

  /** An attempt's time begins once there is a place for its program. */
  async #playWithSlot(planned: PlannedAttempt): Promise<AttemptRecord> {
    const program = agentProgram(this.#options.agent);
    if (program === null) return this.#playOne(planned);
    const giveBack = await slotsOf(program).take(this.#over.signal);
    return this.#playOne(planned).finally(giveBack);
  }

  async #playOne(planned: PlannedAttempt): Promise<AttemptRecord> {
    if (this.#ended !== null) throw this.#ended;
    let resources: AttemptResources | null = null;
    try {
      resources = (await this.#resources?.setUp(planned)) ?? null;
      return await this.#playRecorded(planned, resources);
    } catch (error) {
      this.#stopAfter(error);
      // One that was not begun because another one failed says why that did.
      throw this.#ended;
    } finally {
      await resources?.end();
      this.#done += 1;
    }
  }

  /** The attempt's time begins here, and its resources are not part of it. */
  async #playRecorded(planned: PlannedAttempt, resources: AttemptResources | null): Promise<AttemptRecord> {
    // Ended while they were set up.
    if (this.#ended !== null) throw this.#ended;
    const { agent, policy, isFresh } = this.#options;
    const startedAt = this.#now();
    const { attempt, scenario } = planned;
    const players = planned.players ?? (agent.roles && playersOutside(agent.roles, () => policy));
    const recorder = this.#createRecorder(planned, players !== undefined);
    this.#options.onRecorder?.(attempt, recorder);
    this.#playing.add(recorder);
    try {
      const seed = deriveSeed([...this.#seedParts(planned), 'random']);
      const record = await playAttempt({
        ...this.#options,
        scenario,
        attempt,
        seed,
        recorder,
        journal: this.#journal,
        values: resources?.values ?? {},
        players,
        onThrow: (error) => this.#noteThrow(attempt, error),
      });
      await resources?.check(isFresh);
      this.#orders.set(attempt, recorder.askedOrder());
      const times = { startedAt, endedAt: this.#now(), calls: recorder.askedTimes() };
      this.#times.set(attempt, { ...times, ...this.#thrownAt.get(attempt) });
      const { numbers, rewards, isInTurn } = recorder.turns;
      const isRead = agent.reward !== undefined || agent.rewardGroup !== undefined;
      this.#turns.set(attempt, { numbers, rewards, showsOrder: isRead && isInTurn });
      return record;
    } finally {
      this.#playing.delete(recorder);
      this.#callsDone += recorder.callCount;
    }
  }

  #noteThrow(attempt: number, error: unknown): void {
    const thrownAt = placeOfThrow(error, this.#options.agent.folder);
    if (thrownAt !== null) this.#thrownAt.set(attempt, { thrownAt });
    this.#options.onThrow?.(error);
  }

  #now(): number {
    return Math.round((this.#options.clock ?? SYSTEM_CLOCK).now());
  }

  #createRecorder({ attempt, scenarioIndex }: PlannedAttempt, hasRoles: boolean): Recorder {
    const { place, attemptKey } = this.#options;
    const seedOf = (key: string, occurrence: number): number =>
      callSeed({ ...place, scenario: scenarioIndex, attempt, key, occurrence });
    const own = { journal: this.#journal, attempt, attemptKey: attemptKey(attempt), hasRoles, seedOf };
    return new Recorder({ ...this.#options, ...own });
  }

  #seedParts({ attempt, scenarioIndex }: PlannedAttempt): number[] {
    const { seed, branch, step } = this.#options.place;
    return [seed, branch, step, scenarioIndex, attempt];
  }
}

/** The thing that attempts wait for, with its reason; null if they wait for nothing. */
export function describeWaiting(waiting: EngineWait | null): string | null {
  return waiting === null ? null : `${waiting.awaited ?? ENGINE}: ${waiting.reason}`;
}

function describeWait(clocks: readonly OutageClock[]): EngineWait | null {
  const waiting = clocks.filter(({ reason }) => reason !== null);
  const [first] = waiting.toSorted((a, b) => (a.waitingSince ?? 0) - (b.waitingSince ?? 0));
  if (first === undefined) return null;
  const nextTries = waiting.map(({ nextTryAt }) => nextTryAt).filter((at) => at > Date.now());
  return {
    attempts: waiting.length,
    ...(first.awaited === ENGINE ? {} : { awaited: first.awaited }),
    reason: first.reason ?? '',
    since: new Date(first.waitingSince ?? Date.now()).toISOString(),
    nextTryAt: nextTries.length === 0 ? null : new Date(Math.min(...nextTries)).toISOString(),
  };
}
