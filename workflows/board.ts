/**
 * What people see of a run: its state by query, in Temporal's UI and, through `record`, in the store. The plan never
 * reads it. Writing to the store runs beside the run's own work, in order, and outlives a cancellation.
 */
import { CancellationScope, condition, setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';

import type { EvalResult, RunConfig, RunState, StepSummary } from '../core/contract.ts';
import type { RunActivities } from './activities.ts';
import { describeRun } from './run-details.ts';
import { newRunState } from './run-summary.ts';
import { temperAgent, temperPhase, temperReward, temperRun, temperStep } from './search-attributes.ts';

/** What continue-as-new carries of it. Bounded: the whole curve is in the store. */
export interface CarriedBoard {
  state: RunState;
  recent: StepSummary[];
  startedAtMs: number;
  /** How many steps trained nothing; runs carried on by an earlier version have none. */
  emptySteps?: number;
}

type RecordActivities = Pick<RunActivities, 'record' | 'lastRecord'>;

const LAST_RECORD_PATIENCE_MS = 10_000;
const RECENT_STEPS = 10;
const MAX_NOTES = 50;
const MAX_EVALS = 200;
const TRAINED_NOTHING = 'trained nothing';

export class Board {
  #state: RunState;
  #recent: StepSummary[];
  #emptySteps: number;
  readonly #startedAtMs: number;
  readonly #activities: RecordActivities;
  #recorded: Promise<void> = Promise.resolve();
  #recording = false;

  constructor(config: RunConfig, carried: CarriedBoard | null, activities: RecordActivities) {
    this.#state = carried?.state ?? newRunState(config);
    this.#recent = carried?.recent ?? [];
    this.#emptySteps = carried?.emptySteps ?? 0;
    this.#startedAtMs = carried?.startedAtMs ?? Date.now();
    this.#activities = activities;
    if (carried === null) this.#index();
  }

  get state(): RunState {
    return this.#state;
  }

  /** The step that is being done, or the last one where no step is. */
  get stepInHand(): number {
    const { step, phase, waitingFor } = this.#state;
    return waitingFor !== null && (phase === 'rollout' || phase === 'train') ? step + 1 : step;
  }

  carried(): CarriedBoard {
    const [state, recent, startedAtMs, emptySteps] = [this.#state, this.#recent, this.#startedAtMs, this.#emptySteps];
    return { state, recent, startedAtMs, emptySteps };
  }

  /** A wait begins: it has a phase, a name and a queue, and people see since when. */
  waitFor(phase: RunState['phase'], work: string, queue: string): void {
    this.update({ phase, waitingFor: `${work} on queue ${queue}, since ${new Date().toISOString()}` });
  }

  /** A stop was asked for; the run ends after the step in hand. */
  stopping(reason: string | null): void {
    this.update({ state: 'stopping' });
    this.note(
      `stop asked for during ${this.#state.phase}, ${reason === null ? 'no reason given' : `because: ${reason}`}`,
    );
  }

  note(text: string): void {
    this.update({ notes: [...this.#state.notes, text].slice(-MAX_NOTES) });
  }

  /** One note, counted: a run may have hundreds of such steps. */
  noteEmptyStep(step: number, why: string): void {
    this.#emptySteps += 1;
    const counted =
      this.#emptySteps === 1 ? `step ${step}` : `${this.#emptySteps} steps, the last of them step ${step},`;
    const others = this.#state.notes.filter((note) => !note.includes(TRAINED_NOTHING));
    this.update({ notes: others });
    this.note(`${counted} ${TRAINED_NOTHING} (${why}); the policy stays`);
  }

  evaluated(result: EvalResult): void {
    const place = result.step === 0 ? { evalBefore: result } : { evalAfter: result };
    this.update({ ...place, evals: [...this.#state.evals, result].slice(-MAX_EVALS), waitingFor: null });
  }

  stepped(summary: StepSummary): void {
    this.#recent = [...this.#recent, summary].slice(-RECENT_STEPS);
    const { step, reward, adapterSha256 } = summary;
    this.update({ step, reward, adapterSha256, phase: 'rollout', waitingFor: null });
  }

  update(change: Partial<RunState>): void {
    this.#state = { ...this.#state, ...change, wallSeconds: (Date.now() - this.#startedAtMs) / 1000 };
    setCurrentDetails(describeRun(this.#state, this.#recent));
  }

  /** Starts writing the state for people; waits only for the writing before it. */
  async record(summaries: StepSummary[] = []): Promise<void> {
    await this.#recorded;
    this.#index();
    const input = { state: this.#state, summaries };
    this.#recording = true;
    this.#recorded = CancellationScope.nonCancellable(() => this.#activities.record(input)).finally(() => {
      this.#recording = false;
    });
    // Its failure is thrown where it is awaited; that nobody listens until then is no unhandled rejection.
    this.#recorded.catch(() => undefined);
  }

  /** All that was to be written is written. */
  async recorded(): Promise<void> {
    await this.#recorded;
  }

  /** A run's last state where it ended well: it stands in the store before the run is over. */
  async close(state: 'completed' | 'stopped'): Promise<RunState> {
    this.update({ state, phase: 'done', waitingFor: null });
    await this.record();
    await this.recorded();
    return this.#state;
  }

  /** A run's last state where it did not: written if it can be within a minute, for the store itself may be what failed. */
  async closeBadly(state: 'cancelled' | 'failed', failure: string | null): Promise<void> {
    this.update({ state, failure, waitingFor: null });
    // A run that was never prepared leaves nothing in the store: its name is free for the corrected one.
    if (this.#state.phase === 'prepare') return;
    await CancellationScope.nonCancellable(async () => {
      await condition(() => !this.#recording, LAST_RECORD_PATIENCE_MS);
      this.#index();
      await this.#activities.lastRecord({ state: this.#state, summaries: [] }).catch(() => undefined);
    });
  }

  /** Search attributes, once per record: each upsert is an event of the history. */
  #index(): void {
    const { run, agent, step, phase, reward } = this.#state;
    upsertSearchAttributes([
      { key: temperRun, value: run },
      { key: temperAgent, value: agent },
      { key: temperStep, value: step },
      { key: temperReward, value: reward },
      { key: temperPhase, value: phase },
    ]);
  }
}
