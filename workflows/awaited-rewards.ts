/**
 * Groups that were played and wait for rewards from outside, for days if need be: the run sleeps until somebody says that
 * a group is complete, or until the next deadline. Nothing is polled, so its history does not grow meanwhile.
 */
import { condition } from '@temporalio/workflow';

import type { AwaitedRewards, GroupResult } from '../core/contract/contract.ts';
import {
  deadlineOf,
  groupName,
  planGivenJudging,
  summariseAwaited,
  type PlayedPlace,
  type Over,
} from '../core/plan/given.ts';
import type { Run } from './run.ts';
import type { StepInHand } from './step-in-hand.ts';

/** A step that needs only some of the groups; the others may wait for a later one. */
export interface Enough {
  isEnough(decided: GroupResult[]): boolean;
  /** Shown to people beside the rewards that are missing. */
  describe(decided: GroupResult[]): Pick<AwaitedRewards, 'complete' | 'needed'>;
}

/**
 * Resolves once enough groups are decided, or all, or the run is stopped, with the results of those that are decided, in
 * the order of the groups.
 */
export async function awaitRewards(
  run: Run,
  inHand: StepInHand,
  groups: readonly PlayedPlace[],
  enough: Enough,
): Promise<GroupResult[]> {
  if (groups.length === 0) return [];
  const wait = new Wait(run, inHand, groups, enough);
  try {
    return await wait.untilDecided();
  } finally {
    run.status.endAwaiting();
  }
}

/** Decides groups with what they were given. */
export async function closeRewards(run: Run, groups: readonly PlayedPlace[], over: Over): Promise<GroupResult[]> {
  const decided: GroupResult[] = [];
  let left = groups;
  while (left.length > 0) {
    const { config } = run.controls;
    const looked = await run.activities.judgeGiven(planGivenJudging(config, left[0]!.branch, left, () => over));
    decided.push(...looked.decided);
    const names = new Set(looked.decided.map(groupName));
    left = left.filter((group) => !names.has(groupName(group)));
  }
  return decided;
}

class Wait {
  readonly #run: Run;
  readonly #inHand: StepInHand;
  readonly #groups: readonly PlayedPlace[];
  readonly #enough: Enough;
  readonly #decided = new Map<string, GroupResult>();
  /** Times at which groups were played, in milliseconds; known after the first look. */
  readonly #playedAt = new Map<string, number>();

  constructor(run: Run, inHand: StepInHand, groups: readonly PlayedPlace[], enough: Enough) {
    this.#run = run;
    this.#inHand = inHand;
    this.#groups = groups;
    this.#enough = enough;
  }

  async untilDecided(): Promise<GroupResult[]> {
    const { activities, controls, status } = this.#run;
    const { config } = controls;
    for (;;) {
      await this.#untilShown();
      controls.takeRewards();
      const { decided, waiting } = await activities.judgeGiven(this.#planLook());
      for (const result of decided) this.#decided.set(groupName(result), result);
      for (const each of waiting) {
        if (each.missing > 0 && !this.#playedAt.has(groupName(each)))
          this.#playedAt.set(groupName(each), each.playedAt ?? Date.now());
      }
      // Some are left where one look decides no more of them.
      if (waiting.some(({ missing }) => missing === 0)) continue;
      if (waiting.length === 0 || this.#isOver()) return this.#results();
      const step = this.#inHand.step;
      const seen = summariseAwaited(config, step, waiting, this.#results(), this.#playedAt);
      await this.#untilShown();
      await status.awaitRewards(this.#inHand, { ...seen, ...this.#enough.describe(this.#results()) });
      await this.#sleep(waiting.map(groupName));
    }
  }

  #results(): GroupResult[] {
    return this.#groups.flatMap((group) => this.#decided.get(groupName(group)) ?? []);
  }

  #isOver(): boolean {
    return this.#run.controls.requested.stop || this.#enough.isEnough(this.#results());
  }

  /** Handlers of messages issue their commands first: see `RunStatus.isShowing`. */
  async #untilShown(): Promise<void> {
    await condition(() => !this.#run.status.isShowing);
  }

  #planLook() {
    const { config } = this.#run.controls;
    const left = this.#groups.filter((group) => !this.#decided.has(groupName(group)));
    return planGivenJudging(config, left[0]!.branch, left, (group) => this.#whyOver(group));
  }

  #whyOver(group: PlayedPlace): Over | null {
    const { config } = this.#run.controls;
    const deadline = deadlineOf(config, this.#playedAt.get(groupName(group)));
    return deadline !== null && Date.now() >= deadline ? 'timeout' : null;
  }

  async #sleep(waiting: readonly string[]): Promise<void> {
    const { controls, status } = this.#run;
    const { config } = controls;
    const isWoken = (): boolean => !status.isShowing && (controls.hasRewards || controls.requested.stop);
    const deadlines = waiting.map((name) => deadlineOf(config, this.#playedAt.get(name))).filter((at) => at !== null);
    if (deadlines.length === 0) await condition(isWoken);
    else await condition(isWoken, Math.max(1, Math.min(...deadlines) - Date.now()));
  }
}
