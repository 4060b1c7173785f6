/**
 * What people tell a run. Handlers write `told` and wake the loop; the loop alone takes from it, between two pieces of
 * work. Everything that was told and not taken yet goes along with continue-as-new.
 */
import { CancellationScope, condition, currentUpdateInfo, setHandler } from '@temporalio/workflow';

import type { Pause, RunConfig, SettingChange } from '../core/contract.ts';
import type { RunPosition } from '../core/plan-step.ts';
import { applyChanges, applySettings, planChanges, type Settings } from '../core/settings.ts';
import type { RunActivities } from './activities.ts';
import type { Board } from './board.ts';
import type { Judging } from './judging.ts';
import * as messages from './messages.ts';
import { createRefusals } from './refusals.ts';

interface Told {
  stop: boolean;
  pause: Pause | null;
  settings: SettingsTold[];
  rollbacks: RollbackTold[];
}

interface SettingsTold {
  values: Settings;
  reason: string | null;
}

/** `finished`: the last finished step when it was told. */
export interface RollbackTold {
  requestId: string;
  step: number;
  finished: number;
  reason: string | null;
}

/** What continue-as-new carries of it. */
export interface CarriedInstructions {
  told: Told;
  /** How many times settings were kept in the store. */
  amendments: number;
  lastRollback: RollbackTold | null;
}

/** What a run's instructions act on. */
interface Instructed {
  board: Board;
  activities: RunActivities;
  judging: Judging;
}

export class Instructions {
  /** Written by handlers, and by the loop where it pauses by itself. */
  readonly told: Told;
  readonly #run: string;
  readonly #board: Board;
  readonly #activities: RunActivities;
  readonly #judging: Judging;
  #config: RunConfig;
  #settingsTaken = 0;
  #rollbacksTaken = 0;
  #amendments: number;
  #lastRollback: RollbackTold | null;
  #work: CancellationScope | null = null;
  #ending = false;

  constructor(config: RunConfig, carried: CarriedInstructions, { board, activities, judging }: Instructed) {
    this.told = carried.told;
    this.#amendments = carried.amendments;
    this.#lastRollback = carried.lastRollback;
    this.#run = config.run;
    this.#config = config;
    this.#board = board;
    this.#activities = activities;
    this.#judging = judging;
  }

  /** What steps are planned with: settings that were told and not taken yet are not in it. */
  get config(): RunConfig {
    return this.#config;
  }

  /** With all that was told. */
  get wanted(): RunConfig {
    const untaken = this.told.settings.slice(this.#settingsTaken);
    return untaken.reduce((config, { values }) => applySettings(config, values), this.#config);
  }

  /** Taken before the run rests, ends or hands itself on: nothing that was told may be lost. */
  get hasToTake(): boolean {
    return this.rollback !== null || this.settings !== null;
  }

  /** Why the next step would cost more than was allowed; null where it would not. */
  get budgetComplaint(): string | null {
    return this.#judging.complaintAboutBudget(this.wanted);
  }

  get isOverBudget(): boolean {
    return this.budgetComplaint !== null;
  }

  /** The oldest settings that were told and not taken yet. */
  get settings(): SettingsTold | null {
    return this.told.settings[this.#settingsTaken] ?? null;
  }

  get isPaused(): boolean {
    return this.told.pause !== null && !this.told.stop;
  }

  get isEnding(): boolean {
    return this.#ending;
  }

  /** The oldest wish to go back that was not taken yet. */
  get rollback(): RollbackTold | null {
    return this.told.rollbacks[this.#rollbacksTaken] ?? null;
  }

  /** The last step that will be kept when all that was told is done. */
  get lastKept(): number {
    return this.told.rollbacks.slice(this.#rollbacksTaken).at(-1)?.step ?? this.#board.state.step;
  }

  /** Handlers stand before the run's first await, so that nothing told to a starting run is missed. */
  listen(): void {
    const refusals = createRefusals({ instructions: this, board: this.#board, judging: this.#judging });
    setHandler(messages.progressQuery, () => this.#board.state);
    setHandler(messages.stopUpdate, (request) => this.#stop(request), { validator: refusals.stop });
    setHandler(messages.pauseUpdate, (request) => this.#pause(request), { validator: refusals.pause });
    setHandler(messages.resumeUpdate, () => this.#resume(), { validator: refusals.resume });
    setHandler(messages.setUpdate, (request) => this.#set(request), { validator: refusals.set });
    setHandler(messages.rollbackUpdate, (request) => this.#rollBack(request), { validator: refusals.rollback });
  }

  /** From here on everything is refused: the run's last word is being written. */
  end(): void {
    this.#ending = true;
  }

  carried(): CarriedInstructions {
    const { stop, pause, settings, rollbacks } = this.told;
    const untaken = {
      settings: settings.slice(this.#settingsTaken),
      rollbacks: rollbacks.slice(this.#rollbacksTaken),
    };
    return {
      told: { stop, pause, ...untaken },
      amendments: this.#amendments,
      lastRollback: this.#lastRollback,
    };
  }

  /** Work that a rollback gives up; null where it did, or where one was told before it began. */
  async interruptible<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.rollback !== null) return null;
    const scope = new CancellationScope();
    this.#work = scope;
    try {
      return await scope.run(work);
    } catch (error) {
      // Whatever else happened to it: the run goes back. A run that is cancelled is not held up by that.
      if (this.rollback === null || CancellationScope.current().consideredCancelled) throw error;
      return null;
    } finally {
      this.#work = null;
    }
  }

  /** Nothing moves until the run is resumed, stopped or rolled back, or its history has grown too long. */
  async rest(isHistoryLong: () => boolean): Promise<void> {
    if (this.told.pause === null) return;
    this.#board.resting(this.told.pause);
    await this.#board.record();
    await condition(() => !this.isPaused || this.hasToTake || isHistoryLong());
  }

  /** As if a person had told it to: the run waits for one who allows more, or ends it. */
  pauseForBudget(): void {
    const remedy = `temper set ${this.#run} max-judge-usd=N, then temper resume ${this.#run}`;
    const pause = { since: new Date().toISOString(), reason: `${this.budgetComplaint}; ${remedy}` };
    this.told.pause = pause;
    this.#board.pausing(pause);
  }

  /** In effect from the next plan on, and kept in the store before it: a run that is started again knows it. */
  async takeSettings({ branch, step }: RunPosition, { values, reason }: SettingsTold): Promise<void> {
    const changes = planChanges(this.#config, values, { branch, step: step + 1, reason });
    this.#settingsTaken += 1;
    this.#config = applyChanges(this.#config, changes);
    if (changes.length === 0) return;
    this.#amendments += 1;
    this.#board.changed(changes, this.#planUntaken());
    await this.#activities.amend({ run: this.#run, number: this.#amendments, changes });
  }

  /** What the store says was changed before this run was started again. */
  recall(changes: readonly SettingChange[], amendments: number): void {
    this.#config = applyChanges(this.#config, changes);
    this.#amendments = amendments;
    this.#board.changed(changes, this.#planUntaken());
  }

  rolledBack(told: RollbackTold): void {
    this.#rollbacksTaken += 1;
    this.#lastRollback = told;
  }

  async #stop({ reason }: messages.StopRequest): Promise<messages.StopAnswer> {
    const { told } = this;
    const first = !told.stop;
    const afterStep = this.#board.lastBegun;
    told.stop = true;
    if (first) this.#board.stopping(reason);
    await this.#board.show();
    return { first, afterStep };
  }

  async #pause({ reason }: messages.PauseRequest): Promise<messages.PauseAnswer> {
    const { told } = this;
    const first = told.pause === null;
    const pause = told.pause ?? { since: new Date().toISOString(), reason };
    told.pause = pause;
    const afterStep = this.#board.lastBegun;
    if (first) this.#board.pausing(pause);
    if (first) await this.#board.show();
    return { first, afterStep, since: pause.since };
  }

  async #resume(): Promise<messages.ResumeAnswer> {
    const { told } = this;
    const first = told.pause !== null;
    told.pause = null;
    if (!first) return { first };
    this.#board.resumed();
    await this.#board.show();
    return { first };
  }

  async #set({ settings, reason }: messages.SetRequest): Promise<messages.SetAnswer> {
    const changes = this.#tell(settings, reason);
    if (changes.length > 0) await this.#board.show();
    return { changes };
  }

  #tell(values: Settings, reason: string | null): SettingChange[] {
    const changes = planChanges(this.wanted, values, { ...this.#nextPlan(), reason });
    if (changes.length > 0) this.told.settings.push({ values, reason });
    this.#board.changed([], this.#planUntaken());
    return changes;
  }

  async #rollBack({ step, settings, reason }: messages.RollbackRequest): Promise<messages.RollbackAnswer> {
    const { step: finished } = this.#board.state;
    const requestId = currentUpdateInfo()?.id ?? '';
    const known = this.#toldBefore(requestId, step);
    const changes = settings === null ? [] : this.#tell(settings, reason);
    if (known !== null && changes.length === 0) return { step: known.step, from: known.finished, first: false };
    const wish = { requestId, step, finished, reason };
    this.told.rollbacks.push(wish);
    this.#board.goingBack(wish);
    this.#work?.cancel();
    await this.#board.show();
    return { step, from: finished, first: true };
  }

  /** The same request again, after a lost answer; or the same wish, while nothing has been finished since. */
  #toldBefore(requestId: string, step: number): RollbackTold | null {
    const last = this.told.rollbacks.at(-1) ?? this.#lastRollback;
    if (last === null) return null;
    return last.requestId === requestId || (last.step === step && this.lastKept === step) ? last : null;
  }

  /** Where what is told now comes into effect. */
  #nextPlan(): { branch: number; step: number } {
    const { branch } = this.#board.state;
    const pending = this.told.rollbacks.slice(this.#rollbacksTaken).at(-1);
    return { branch, step: (pending?.step ?? this.#board.lastBegun) + 1 };
  }

  /** For people: what was told and is not in effect yet. */
  #planUntaken(): SettingChange[] {
    let config = this.#config;
    return this.told.settings.slice(this.#settingsTaken).flatMap(({ values, reason }) => {
      const changes = planChanges(config, values, { ...this.#nextPlan(), reason });
      config = applyChanges(config, changes);
      return changes;
    });
  }
}
