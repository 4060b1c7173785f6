/**
 * The requests of people to a run. Handlers write `requested` and wake the loop; the loop alone applies it, between two
 * steps. Continue-as-new carries every request that is not applied yet.
 */
import { CancellationScope, condition, currentUpdateInfo, setHandler } from '@temporalio/workflow';

import type { Pause, RunConfig, SettingChange } from '../core/contract/contract.ts';
import type { RunPosition } from '../core/plan/step.ts';
import { applyChanges, applySettings, planChanges, type Settings } from '../core/rules/settings.ts';
import type { ExceededBudget } from '../core/rules/costs.ts';
import type { RunActivities } from './activities.ts';
import type { Costs } from './costs.ts';
import type { RunStatus } from './run-status.ts';
import * as messages from './messages.ts';

interface Requested {
  stop: boolean;
  pause: Pause | null;
  settings: PendingSettings[];
  rollbacks: PendingRollback[];
}

interface PendingSettings {
  values: Settings;
  reason: string | null;
}

/** `finished`: the last finished step when it was requested. */
export interface PendingRollback {
  requestId: string;
  step: number;
  finished: number;
  reason: string | null;
}

/** The part that continue-as-new carries. */
export interface CarriedControls {
  requested: Requested;
  /** How many times settings were written to the store. */
  amendments: number;
  lastRollback: PendingRollback | null;
}

/** The parts of a run that requests act on. */
interface Controlled {
  status: RunStatus;
  activities: RunActivities;
  costs: Costs;
}

export class RunControls {
  /** Written by handlers, and by the loop where it pauses by itself. */
  readonly requested: Requested;
  readonly #run: string;
  readonly #status: RunStatus;
  readonly #activities: RunActivities;
  readonly #costs: Costs;
  #config: RunConfig;
  #settingsApplied = 0;
  #rollbacksDone = 0;
  #amendments: number;
  #lastRollback: PendingRollback | null;
  #hasRewards = false;
  #work: CancellationScope | null = null;
  #ending = false;

  constructor(config: RunConfig, carried: CarriedControls, { status, activities, costs }: Controlled) {
    this.requested = carried.requested;
    this.#amendments = carried.amendments;
    this.#lastRollback = carried.lastRollback;
    this.#run = config.run;
    this.#config = config;
    this.#status = status;
    this.#activities = activities;
    this.#costs = costs;
  }

  /** The configuration of the next plan: without requested settings that are not applied yet. */
  get config(): RunConfig {
    return this.#config;
  }

  /** The configuration with all requested settings. */
  get requestedConfig(): RunConfig {
    const pending = this.requested.settings.slice(this.#settingsApplied);
    return pending.reduce((config, { values }) => applySettings(config, values), this.#config);
  }

  /** Pending requests are applied before the run waits, ends or continues as new: none may be lost. */
  get hasPending(): boolean {
    return this.pendingRollback !== null || this.pendingSettings !== null;
  }

  /** The budget that the next step would exceed; null if there is none. */
  get exceeded(): ExceededBudget | null {
    return this.#costs.findExceeded(this.requestedConfig);
  }

  get isOverBudget(): boolean {
    return this.exceeded !== null;
  }

  /** The oldest requested settings that are not applied yet. */
  get pendingSettings(): PendingSettings | null {
    return this.requested.settings[this.#settingsApplied] ?? null;
  }

  get isPaused(): boolean {
    return this.requested.pause !== null && !this.requested.stop;
  }

  get isEnding(): boolean {
    return this.#ending;
  }

  /** The oldest requested rollback that is not done yet. */
  get pendingRollback(): PendingRollback | null {
    return this.requested.rollbacks[this.#rollbacksDone] ?? null;
  }

  /** The last step that is kept once all requests are done. */
  get lastKept(): number {
    return this.requested.rollbacks.slice(this.#rollbacksDone).at(-1)?.step ?? this.#status.state.step;
  }

  /** Handlers are set before the run's first await, so that a starting run misses no request. */
  listen(): void {
    const validators = messages.createValidators({ controls: this, status: this.#status });
    setHandler(messages.rewardsSignal, () => void (this.#hasRewards = true));
    setHandler(messages.progressQuery, () => this.#status.state);
    setHandler(messages.stopUpdate, (request) => this.#stop(request), { validator: validators.stop });
    setHandler(messages.pauseUpdate, (request) => this.#pause(request), { validator: validators.pause });
    setHandler(messages.resumeUpdate, () => this.#resume(), { validator: validators.resume });
    setHandler(messages.setUpdate, (request) => this.#set(request), { validator: validators.set });
    setHandler(messages.rollbackUpdate, (request) => this.#rollBack(request), { validator: validators.rollback });
  }

  /** All requests are refused from here on: the run's last state is being written. */
  end(): void {
    this.#ending = true;
  }

  carried(): CarriedControls {
    const { stop, pause, settings, rollbacks } = this.requested;
    const pending = {
      settings: settings.slice(this.#settingsApplied),
      rollbacks: rollbacks.slice(this.#rollbacksDone),
    };
    return {
      requested: { stop, pause, ...pending },
      amendments: this.#amendments,
      lastRollback: this.#lastRollback,
    };
  }

  /** Runs work that a rollback cancels; null if it did, or if one was requested before the work began. */
  async interruptible<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.pendingRollback !== null) return null;
    const scope = new CancellationScope();
    this.#work = scope;
    try {
      return await scope.run(work);
    } catch (error) {
      // The run goes back whatever else happened to the work. A cancelled run is not held up by that.
      if (this.pendingRollback === null || CancellationScope.current().consideredCancelled) throw error;
      return null;
    } finally {
      this.#work = null;
    }
  }

  /** Shows what the run has cost until now. */
  showCosts(): void {
    this.#countTime();
    this.#status.update(this.#costs.shown(this.#config));
  }

  /** Called before the state changes: a pause is no work. */
  #countTime(): void {
    if (this.#status.state.state === 'paused') this.#costs.skipTime();
    else this.#costs.countTime(this.#config);
  }

  /** Waits until the run is resumed, stopped or rolled back, or its history has grown too long. */
  async waitWhilePaused(isHistoryLong: () => boolean): Promise<void> {
    if (this.requested.pause === null) return;
    this.showCosts();
    this.#status.setPaused(this.requested.pause);
    await this.#status.record();
    await condition(() => !this.isPaused || this.hasPending || isHistoryLong());
    this.#countTime();
  }

  /** The run is about to look into the store for rewards. */
  takeRewards(): void {
    this.#hasRewards = false;
  }

  /** True if the run should look into the store now, because rewards were given or somebody stops it. */
  get hasRewards(): boolean {
    return this.#hasRewards;
  }

  /** Pauses as a request would: the run waits until somebody allows more, or ends it. */
  pauseForBudget({ flag, complaint }: ExceededBudget): void {
    const remedy = `temper set ${this.#run} ${flag}=N, then temper resume ${this.#run}`;
    const pause = { since: new Date().toISOString(), reason: `${complaint}; ${remedy}` };
    this.requested.pause = pause;
    this.#status.setPausing(pause);
  }

  /** Settings take effect with the next plan, and are in the store before it: a resumed run knows them. */
  async applyPendingSettings({ branch, step }: RunPosition, { values, reason }: PendingSettings): Promise<void> {
    const changes = planChanges(this.#config, values, { branch, step: step + 1, reason });
    this.#countTime();
    this.#settingsApplied += 1;
    this.#config = applyChanges(this.#config, changes);
    if (changes.length === 0) return;
    this.#amendments += 1;
    this.#status.setChanges(changes, this.#planPending());
    // A run that continues must not take the step before again under other settings.
    await this.#status.settled();
    await this.#activities.amend({ run: this.#run, number: this.#amendments, changes });
  }

  /** Applies the changes that the store recorded before this run was resumed. */
  restore(changes: readonly SettingChange[], amendments: number): void {
    this.#config = applyChanges(this.#config, changes);
    this.#amendments = amendments;
    this.#status.setChanges(changes, this.#planPending());
  }

  rolledBack(rollback: PendingRollback): void {
    this.#rollbacksDone += 1;
    this.#lastRollback = rollback;
  }

  async #stop({ reason }: messages.StopRequest): Promise<messages.StopAnswer> {
    const { requested } = this;
    const first = !requested.stop;
    // A step that waits for rewards is not finished: it keeps them until the run continues.
    const afterStep = this.#status.state.awaited ? this.#status.state.step : this.#status.lastBegun;
    requested.stop = true;
    this.#countTime();
    if (first) this.#status.setStopping(reason);
    await this.#status.show();
    return { first, afterStep };
  }

  async #pause({ reason }: messages.PauseRequest): Promise<messages.PauseAnswer> {
    const { requested } = this;
    const first = requested.pause === null;
    const pause = requested.pause ?? { since: new Date().toISOString(), reason };
    requested.pause = pause;
    const afterStep = this.#status.lastBegun;
    if (first) this.#status.setPausing(pause);
    if (first) await this.#status.show();
    return { first, afterStep, since: pause.since };
  }

  async #resume(): Promise<messages.ResumeAnswer> {
    const { requested } = this;
    const first = requested.pause !== null;
    requested.pause = null;
    if (!first) return { first };
    this.#countTime();
    this.#status.setResumed();
    await this.#status.show();
    return { first };
  }

  async #set({ settings, reason }: messages.SetRequest): Promise<messages.SetAnswer> {
    const changes = this.#addSettings(settings, reason);
    if (changes.length > 0) await this.#status.show();
    return { changes };
  }

  #addSettings(values: Settings, reason: string | null): SettingChange[] {
    const changes = planChanges(this.requestedConfig, values, { ...this.#nextPlan(), reason });
    if (changes.length > 0) this.requested.settings.push({ values, reason });
    this.#status.setChanges([], this.#planPending());
    return changes;
  }

  async #rollBack({ step, settings, reason }: messages.RollbackRequest): Promise<messages.RollbackAnswer> {
    const { step: finished } = this.#status.state;
    const requestId = currentUpdateInfo()?.id ?? '';
    const known = this.#findRequested(requestId, step);
    const changes = settings === null ? [] : this.#addSettings(settings, reason);
    if (known !== null && changes.length === 0) return { step: known.step, from: known.finished, first: false };
    const rollback = { requestId, step, finished, reason };
    this.requested.rollbacks.push(rollback);
    this.#status.noteRollback(rollback);
    this.#work?.cancel();
    await this.#status.show();
    return { step, from: finished, first: true };
  }

  /** An earlier request with the same id (its answer was lost), or for the same step with nothing finished since. */
  #findRequested(requestId: string, step: number): PendingRollback | null {
    const last = this.requested.rollbacks.at(-1) ?? this.#lastRollback;
    if (last === null) return null;
    return last.requestId === requestId || (last.step === step && this.lastKept === step) ? last : null;
  }

  /** The branch and step from which a request made now takes effect. */
  #nextPlan(): { branch: number; step: number } {
    const { branch } = this.#status.state;
    const pending = this.requested.rollbacks.slice(this.#rollbacksDone).at(-1);
    return { branch, step: (pending?.step ?? this.#status.lastBegun) + 1 };
  }

  /** Requested changes that are not in effect yet, for display. */
  #planPending(): SettingChange[] {
    let config = this.#config;
    return this.requested.settings.slice(this.#settingsApplied).flatMap(({ values, reason }) => {
      const changes = planChanges(config, values, { ...this.#nextPlan(), reason });
      config = applyChanges(config, changes);
      return changes;
    });
  }
}
