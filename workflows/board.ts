/**
 * What people see of a run: its state by query, in Temporal's UI and, through `record`, in the store. The plan never
 * reads it. Writing to the store runs beside the run's own work, in order, and outlives a cancellation.
 */
import { CancellationScope, condition, setCurrentDetails } from '@temporalio/workflow';

import type {
  Checkpoint,
  EvalResult,
  JudgeSpending,
  Located,
  Pause,
  RunConfig,
  RunState,
  SettingChange,
  StepSummary,
} from '../core/contract.ts';
import { describeSkipped, describeUnused, type Unused } from '../core/learning-signal.ts';
import { describeLineage } from '../core/lineage.ts';
import { formatReason } from '../core/settings.ts';
import {
  entropiesAtStart,
  WARNED_STEPS,
  WATCHED_STEPS,
  warnOfTraining,
  type EntropyOfStep,
} from '../core/training-warnings.ts';
import type { RunActivities } from './activities.ts';
import { describeRun } from './run-details.ts';
import { newRunState } from '../core/run-summary.ts';
import { KEPT_EVALS, KEPT_NOTES } from '../core/state-limits.ts';
import { StepInHand, type StepPhase } from './step-in-hand.ts';
import type { LaneOrder } from './lane-order.ts';
import { indexRun, StateWriter } from './state-writer.ts';

/** What continue-as-new carries of it. Bounded: the whole curve is in the store. */
export interface CarriedBoard {
  state: RunState;
  recent: StepSummary[];
  /** Of the first steps that this run has seen; absent: they were not kept then. */
  entropies?: EntropyOfStep[];
  startedAtMs: number;
  emptySteps: number;
  changes: SettingChange[];
}

type RecordActivities = Pick<RunActivities, 'record' | 'checkpoint' | 'lastRecord'>;

const LAST_RECORD_PATIENCE_MS = 10_000;
const SHOWN_WITHIN_MS = 2000;
/** In every note about steps that trained nothing. */
const SKIPPED = ' skipped';
const MAX_CHANGES = 50;
const NOTHING_CARRIED = { recent: [], entropies: [], emptySteps: 0, changes: [] };

export class Board {
  #state: RunState;
  #recent: StepSummary[];
  #entropies: EntropyOfStep[];
  #emptySteps: number;
  readonly #startedAtMs: number;
  readonly #activities: RecordActivities;
  /** Changed settings that are in effect; the state shows those that were told, too. */
  #changes: SettingChange[];
  /** In order: people see what the oldest one waits for. */
  #inHand: StepInHand[] = [];
  readonly #writer = new StateWriter(() => this.#state);
  #showing = 0;

  constructor(config: RunConfig, carried: CarriedBoard | null, activities: RecordActivities) {
    this.#state = { ...newRunState(config), ...carried?.state };
    const { recent, entropies, emptySteps, changes } = { ...NOTHING_CARRIED, ...carried };
    this.#recent = recent;
    this.#entropies = entropies;
    this.#emptySteps = emptySteps;
    this.#startedAtMs = carried?.startedAtMs ?? Date.now();
    this.#changes = changes;
    this.#activities = activities;
    if (carried === null) indexRun(this.#state);
  }

  get state(): RunState {
    return this.#state;
  }

  /**
   * A message's handler has yet to issue its commands. The loop issues none until then: whether the record before it
   * was finished in the same workflow task or in an earlier one may differ in a replay, and with it who is first.
   */
  get isShowing(): boolean {
    return this.#showing > 0;
  }

  get isRecording(): boolean {
    return this.#writer.isWriting;
  }

  /** Where steps overlap: what the loop writes takes turns with what else it does; null: it does nothing else. */
  set turns(turns: LaneOrder | null) {
    this.#writer.turns = turns;
  }

  /** The newest step that is in hand, or the last finished one where none is. */
  get lastBegun(): number {
    return this.#inHand.at(-1)?.step ?? this.#state.step;
  }

  carried(): CarriedBoard {
    return {
      state: this.#state,
      recent: this.#recent,
      entropies: this.#entropies,
      startedAtMs: this.#startedAtMs,
      emptySteps: this.#emptySteps,
      changes: this.#changes,
    };
  }

  /** A wait begins: it has a phase, a name and a queue, and people see since when. */
  waitFor(phase: RunState['phase'], work: string, queue: string): void {
    this.update({ phase, waitingFor: `${work} on queue ${queue}, since ${new Date().toISOString()}` });
  }

  /** `policy`: of a step that may overlap with others, what it samples from. */
  begin(step: number, policy: Checkpoint | null = null): StepInHand {
    const begun = new StepInHand(step, policy);
    this.#inHand = [...this.#inHand, begun];
    return begun;
  }

  /** A step in hand goes on with its next phase. */
  enter(step: StepInHand, phase: StepPhase, work: string, queue: string): void {
    step.enter(phase, { work, queue });
    if (step === this.#inHand[0]) this.waitFor(phase, work, queue);
    else this.#showOverlap();
  }

  /** Finished or given up. */
  leave(step: StepInHand): void {
    this.#inHand = this.#inHand.filter((other) => other !== step);
    const [oldest] = this.#inHand;
    if (oldest?.waiting && oldest.phase !== 'wait')
      this.waitFor(oldest.phase, oldest.waiting.work, oldest.waiting.queue);
    else if (step.policy !== null) this.#showOverlap();
  }

  /** A stop was asked for; the run ends after what is in hand. */
  stopping(reason: string | null): void {
    this.update({ state: 'stopping', pause: null });
    this.note(
      `stop requested during ${this.#state.phase}, ${reason === null ? 'no reason given' : `because: ${reason}`}`,
    );
  }

  /** A pause was asked for; nothing moves after what is in hand. */
  pausing(pause: Pause): void {
    this.update({ state: 'pausing', pause });
    this.note(`paused after step ${this.lastBegun}${formatReason(pause.reason)}`);
  }

  /** Nothing moves, and people see what would change that. */
  resting(pause: Pause): void {
    const { run } = this.#state;
    const waitingFor = `temper resume ${run}; paused since ${pause.since}${formatReason(pause.reason)}`;
    this.update({ state: 'paused', pause, waitingFor });
  }

  resumed(): void {
    const { state, step } = this.#state;
    const rested = state === 'paused';
    this.update({ state: 'running', pause: null, ...(rested ? { waitingFor: null } : {}) });
    this.note(rested ? `resumed after step ${step}` : 'resumed before the current step finished');
  }

  /** `kept` came into effect; `told` will. */
  changed(kept: readonly SettingChange[], told: readonly SettingChange[]): void {
    this.#changes = [...this.#changes, ...kept].slice(-MAX_CHANGES);
    const changes = [...this.#changes, ...told].slice(-MAX_CHANGES);
    const steps = changes.findLast(({ setting }) => setting === 'steps')?.to ?? this.#state.steps;
    this.update({ changes, steps });
  }

  goingBack({ step, finished, reason }: { step: number; finished: number; reason: string | null }): void {
    this.note(`rollback to step ${step} requested after step ${finished}${formatReason(reason)}`);
  }

  /** The run stands where its store says: on a new branch, or where it was when it ended. */
  located({ branch, lineage, step, checkpoint, evals }: Located): void {
    this.#recent = this.#recent.filter((summary) => summary.step <= step);
    this.#entropies = this.#entropies.filter((of) => of.step <= step);
    const reward = this.#recent.at(-1)?.reward ?? null;
    const place = { branch, lineage, step, reward, adapterSha256: checkpoint.adapterSha256 };
    const [first, last] = [evals.at(0), evals.at(-1)];
    const evalBefore = first?.step === 0 ? first : null;
    const evalAfter = last !== undefined && last.step > 0 ? last : null;
    this.update({ ...place, evals, evalBefore, evalAfter, phase: 'rollout', waitingFor: null });
  }

  goingOn(): void {
    const { step, branch, lineage } = this.#state;
    this.note(`continued after step ${step}${branch === 0 ? '' : ` on ${describeLineage(lineage)}`}`);
  }

  note(text: string): void {
    this.update({ notes: [...this.#state.notes, text].slice(-KEPT_NOTES) });
  }

  /** One note, counted: a run may have hundreds of such steps. */
  noteSkipped({ step, unused }: StepSummary): void {
    this.#emptySteps += 1;
    const counted = `${this.#emptySteps} of ${this.#state.steps} steps were skipped, most recently step ${step}: ${describeUnused(unused)}; the policy is unchanged`;
    const others = this.#state.notes.filter((note) => !note.includes(SKIPPED));
    this.update({ notes: others });
    this.note(this.#emptySteps === 1 ? describeSkipped(step, unused) : counted);
  }

  /** Why the last step's groups could not be trained. */
  get lastUnused(): Unused {
    return this.#recent.at(-1)?.unused ?? {};
  }

  evaluated(result: EvalResult): void {
    const place = result.step === 0 ? { evalBefore: result } : { evalAfter: result };
    this.update({ ...place, evals: [...this.#state.evals, result].slice(-KEPT_EVALS), waitingFor: null });
  }

  stepped(summary: StepSummary, judging: JudgeSpending | null): void {
    this.#recent = [...this.#recent, summary].slice(-WATCHED_STEPS);
    this.#entropies = [...this.#entropies, ...entropiesAtStart([summary])].slice(0, WARNED_STEPS);
    const { step, reward, adapterSha256 } = summary;
    this.update({ step, reward, adapterSha256, judging, phase: 'rollout', waitingFor: null });
  }

  #showOverlap(): void {
    this.update({});
  }

  /** Nothing of runs whose steps do not overlap. */
  #describeOverlap(): Pick<RunState, 'overlap'> {
    const overlap = this.#inHand.flatMap(({ step, phase, policy }) =>
      policy === null ? [] : [{ step, phase, policy: policy.step }],
    );
    return overlap.length > 0 || this.#state.overlap !== undefined ? { overlap } : {};
  }

  update(change: Partial<RunState>): void {
    this.#state = {
      ...this.#state,
      ...change,
      ...this.#describeOverlap(),
      wallSeconds: (Date.now() - this.#startedAtMs) / 1000,
    };
    const warnings = warnOfTraining(this.#recent, this.#entropies);
    setCurrentDetails(describeRun(this.#state, this.#recent, warnings));
  }

  /** Starts writing the state for people; waits only for the writing before it. */
  async record(): Promise<void> {
    await this.#writer.writeInTurn((state) => this.#activities.record({ state }));
  }

  /** Starts what is left to do with a finished step: the next one is begun beside it. */
  async checkpoint(summary: StepSummary): Promise<void> {
    await this.#writer.writeInTurn((state) => this.#activities.checkpoint({ state, summary }));
  }

  /** All that was to be written is written. */
  recorded(): Promise<void> {
    return this.#writer.written();
  }

  /** Written now, so that `temper show` tells it; waited for a moment, not for ever. Its failure is the loop's business. */
  async show(): Promise<void> {
    // Until it is prepared, a run leaves nothing in the store.
    if (this.#state.phase === 'prepare') return;
    let shown = false;
    this.#showing += 1;
    const begun = this.#recordAtOnce().finally(() => (this.#showing -= 1));
    const writing = begun.then(() => this.#writer.current);
    void writing.catch(() => undefined).then(() => (shown = true));
    await condition(() => shown, SHOWN_WITHIN_MS);
  }

  async #recordAtOnce(): Promise<void> {
    await this.#writer.write((state) => this.#activities.record({ state }));
  }

  /** A run's last state where it ended well: it stands in the store before the run is over. */
  async close(state: 'completed' | 'stopped'): Promise<RunState> {
    this.update({ state, phase: 'done', waitingFor: null, pause: null });
    await this.record();
    await this.recorded();
    return this.#state;
  }

  /** A run's last state where it did not: written if it can be within a minute, for the store itself may be what failed. */
  async closeBadly(state: 'cancelled' | 'failed', failure: string | null): Promise<void> {
    this.update({ state, failure, waitingFor: null, pause: null });
    // A run that was never prepared leaves nothing in the store: its name is free for the corrected one.
    if (this.#state.phase === 'prepare') return;
    await CancellationScope.nonCancellable(async () => {
      await condition(() => !this.#writer.isWriting, LAST_RECORD_PATIENCE_MS);
      indexRun(this.#state);
      await this.#activities.lastRecord({ state: this.#state }).catch(() => undefined);
    });
  }
}
