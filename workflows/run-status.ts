/**
 * The status of a run for people: by query, in Temporal's UI and, through `record`, in the store. The plan never reads
 * it. Writes to the store run beside the run's own work, in order, and outlive a cancellation.
 */
import { CancellationScope, condition, setCurrentDetails } from '@temporalio/workflow';

import type {
  AwaitedRewards,
  Checkpoint,
  EvalResult,
  Located,
  Pause,
  Position,
  RunConfig,
  RunState,
  SettingChange,
  StepSummary,
} from '../core/contract/contract.ts';
import { describeAwaited } from '../core/rules/external-rewards.ts';
import { describeSkipped, describeUnused, type Unused } from '../core/reports/learning-signal.ts';
import { describeLineage } from '../core/names/lineage.ts';
import { formatReason } from '../core/rules/settings.ts';
import {
  entropiesAtStart,
  WARNED_STEPS,
  WATCHED_STEPS,
  warnOfTraining,
  type EntropyOfStep,
} from '../core/reports/training-warnings.ts';
import type { RunActivities } from './activities.ts';
import { describeRun } from './run-details.ts';
import { KEPT_EVALS, KEPT_NOTES, newRunState } from '../core/plan/run-summary.ts';
import { StepInHand, type StepPhase } from './step-in-hand.ts';
import type { LaneOrder } from './lane-order.ts';
import { indexRun, StateWriter } from './state-writer.ts';

/** The part that continue-as-new carries. Bounded: the whole curve is in the store. */
export interface CarriedStatus {
  state: RunState;
  recent: StepSummary[];
  /** Entropies of the first steps that this run has seen. */
  entropies: EntropyOfStep[];
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

export class RunStatus {
  #state: RunState;
  #recent: StepSummary[];
  #entropies: EntropyOfStep[];
  #emptySteps: number;
  #startedAtMs: number;
  readonly #activities: RecordActivities;
  /** Changed settings that are in effect; the state shows requested ones, too. */
  #changes: SettingChange[];
  /** Steps in progress, in order: people see what the oldest one waits for. */
  #inHand: StepInHand[] = [];
  readonly #writer = new StateWriter(() => this.#state);
  #showing = 0;

  constructor(config: RunConfig, carried: CarriedStatus | null, activities: RecordActivities) {
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

  /** Overlapping steps take turns with the writes of the loop; null without overlap. */
  set turns(turns: LaneOrder | null) {
    this.#writer.turns = turns;
  }

  /** The newest step in progress, or the last finished one if there is none. */
  get lastBegun(): number {
    return this.#inHand.at(-1)?.step ?? this.#state.step;
  }

  carried(): CarriedStatus {
    return {
      state: this.#state,
      recent: this.#recent,
      entropies: this.#entropies,
      startedAtMs: this.#startedAtMs,
      emptySteps: this.#emptySteps,
      changes: this.#changes,
    };
  }

  /** Shows a wait: its phase, its work, its queue and since when. */
  waitFor(phase: RunState['phase'], work: string, queue: string): void {
    this.update({ phase, waitingFor: `${work} on queue ${queue}, since ${new Date().toISOString()}` });
  }

  /** `policy`: the checkpoint that the step samples from, if steps may overlap. */
  beginStep(step: number, policy: Checkpoint | null = null): StepInHand {
    const begun = new StepInHand(step, policy);
    this.#inHand = [...this.#inHand, begun];
    return begun;
  }

  /** A step in progress continues with its next phase. */
  enterPhase(step: StepInHand, phase: StepPhase, work: string, queue: string): void {
    step.enter(phase, { work, queue });
    if (step === this.#inHand[0]) this.waitFor(phase, work, queue);
    else this.#showOverlap();
  }

  /** A step waits for rewards from outside. Whoever reads the store sees it, too. */
  async awaitRewards(step: StepInHand, awaited: AwaitedRewards): Promise<void> {
    const work = describeAwaited(awaited);
    step.enter('judge', { work, queue: '' });
    this.update({ phase: 'judge', awaited, waitingFor: `${work}; see temper rewards ${this.#state.run}` });
    await this.record();
  }

  endAwaiting(): void {
    this.update({ awaited: null, waitingFor: null });
  }

  /** Finished or given up. */
  endStep(step: StepInHand): void {
    this.#inHand = this.#inHand.filter((other) => other !== step);
    const [oldest] = this.#inHand;
    if (oldest?.waiting && oldest.phase !== 'wait')
      this.waitFor(oldest.phase, oldest.waiting.work, oldest.waiting.queue);
    else if (step.policy !== null) this.#showOverlap();
  }

  /** A stop was requested; the run ends after the steps in progress. */
  setStopping(reason: string | null): void {
    this.update({ state: 'stopping', pause: null });
    this.note(
      `stop requested during ${this.#state.phase}, ${reason === null ? 'no reason given' : `because: ${reason}`}`,
    );
  }

  /** A pause was requested; the run waits after the steps in progress. */
  setPausing(pause: Pause): void {
    this.update({ state: 'pausing', pause });
    this.note(`paused after step ${this.lastBegun}${formatReason(pause.reason)}`);
  }

  /** The run waits, and people see how to resume it. */
  setPaused(pause: Pause): void {
    const { run } = this.#state;
    const waitingFor = `temper resume ${run}; paused since ${pause.since}${formatReason(pause.reason)}`;
    this.update({ state: 'paused', pause, waitingFor });
  }

  setResumed(): void {
    const { state, step } = this.#state;
    const wasPaused = state === 'paused';
    this.update({ state: 'running', pause: null, ...(wasPaused ? { waitingFor: null } : {}) });
    this.note(wasPaused ? `resumed after step ${step}` : 'resumed before the current step finished');
  }

  /** `applied` are in effect; `pending` will be. */
  setChanges(applied: readonly SettingChange[], pending: readonly SettingChange[]): void {
    this.#changes = [...this.#changes, ...applied].slice(-MAX_CHANGES);
    const changes = [...this.#changes, ...pending].slice(-MAX_CHANGES);
    const steps = changes.findLast(({ setting }) => setting === 'steps')?.to ?? this.#state.steps;
    this.update({ changes, steps });
  }

  noteRollback({ step, finished, reason }: { step: number; finished: number; reason: string | null }): void {
    this.note(`rollback to step ${step} requested after step ${finished}${formatReason(reason)}`);
  }

  /** The position that the store has: on a new branch, or where the run was when it ended. */
  setPosition({ branch, lineage, step, checkpoint, evals }: Located): void {
    this.#recent = this.#recent.filter((summary) => summary.step <= step);
    this.#entropies = this.#entropies.filter((of) => of.step <= step);
    const reward = this.#recent.at(-1)?.reward ?? null;
    const place = { branch, lineage, step, reward, adapterSha256: checkpoint.adapterSha256 };
    const [first, last] = [evals.at(0), evals.at(-1)];
    const evalBefore = first?.step === 0 ? first : null;
    const evalAfter = last !== undefined && last.step > 0 ? last : null;
    this.update({ ...place, evals, evalBefore, evalAfter, phase: 'rollout', waitingFor: null });
  }

  noteContinued(): void {
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

  /** How many of the last steps had no attempt that did not fail. */
  get brokenSteps(): number {
    const isBroken = ({ attempts, failedAttempts }: StepSummary) => attempts > 0 && failedAttempts === attempts;
    return this.#recent.length - 1 - this.#recent.findLastIndex((summary) => !isBroken(summary));
  }

  addEvaluation(result: EvalResult): void {
    const place = result.step === 0 ? { evalBefore: result } : { evalAfter: result };
    // A run that continues may evaluate a step again.
    const others = this.#state.evals.filter(({ step }) => step !== result.step);
    this.update({ ...place, evals: [...others, result].slice(-KEPT_EVALS), waitingFor: null });
  }

  addStep(summary: StepSummary, spent: Pick<RunState, 'judging' | 'costs'>): void {
    this.#recent = [...this.#recent, summary].slice(-WATCHED_STEPS);
    this.#entropies = [...this.#entropies, ...entropiesAtStart([summary])].slice(0, WARNED_STEPS);
    const { step, reward, adapterSha256 } = summary;
    this.update({ step, reward, adapterSha256, ...spent, phase: 'rollout', waitingFor: null });
  }

  #showOverlap(): void {
    this.update({});
  }

  /** Empty for runs whose steps do not overlap. */
  #describeOverlap(): Pick<RunState, 'overlap'> {
    const overlap = this.#inHand.flatMap(({ step, phase, policy }) =>
      policy === null ? [] : [{ step, phase, policy: policy.step }],
    );
    return overlap.length > 0 || this.#state.overlap !== undefined ? { overlap } : {};
  }

  update(change: Partial<RunState>): void {
    // Pauses do not count.
    if (this.#state.state === 'paused') this.#startedAtMs = Date.now() - 1000 * this.#state.wallSeconds;
    this.#state = {
      ...this.#state,
      ...change,
      ...this.#describeOverlap(),
      wallSeconds: (Date.now() - this.#startedAtMs) / 1000,
    };
    const warnings = warnOfTraining(this.#recent, this.#state.evals, this.#entropies);
    setCurrentDetails(describeRun(this.#state, this.#recent, warnings));
  }

  /** Starts writing the state for people; waits only for the writing before it. */
  async record(): Promise<void> {
    await this.#writer.writeInTurn((state) => this.#activities.record({ state }));
  }

  /** Starts the checkpoint activity of a finished step, which runs beside the next step. */
  async checkpoint(summary: StepSummary, position: Position): Promise<void> {
    await this.#writer.writeInTurn((state) => this.#activities.checkpoint({ state, summary, position }));
  }

  /** Resolves once everything is written. */
  recorded(): Promise<void> {
    return this.#writer.written();
  }

  /** The same, with no handler of a message that has yet to issue its commands: the position of the last step is stored. */
  async settled(): Promise<void> {
    do {
      await this.recorded();
      await condition(() => !this.isShowing);
    } while (this.isRecording);
  }

  /** Writes the state now, so that `temper show` has it, and waits for a moment. A failure is thrown in the loop. */
  async show(): Promise<void> {
    // Until it is prepared, a run leaves nothing in the store.
    if (this.#state.phase === 'prepare') return;
    let shown = false;
    this.#showing += 1;
    const begun = this.#recordAtOnce().finally(() => (this.#showing -= 1));
    const writing = begun.then(() => this.#writer.current);
    const end = () => {
      shown = true;
    };
    writing.then(end, end);
    await condition(() => shown, SHOWN_WITHIN_MS);
  }

  async #recordAtOnce(): Promise<void> {
    await this.#writer.write((state) => this.#activities.record({ state }));
  }

  /** The last state of a run that ended well is in the store before the run is over. */
  async close(state: 'completed' | 'stopped'): Promise<RunState> {
    this.update({ state, phase: 'done', waitingFor: null, pause: null });
    await this.record();
    await this.recorded();
    return this.#state;
  }

  /** The last state of any other run is written if that is possible within a minute: the store itself may have failed. */
  async closeFailed(state: 'cancelled' | 'failed', failure: string | null): Promise<void> {
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
