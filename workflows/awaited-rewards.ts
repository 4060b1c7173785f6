/**
 * Groups that were played and wait for rewards from outside, for days if need be: the run sleeps until somebody says that
 * a group is complete, or until the next deadline. Nothing is polled, so its history does not grow meanwhile.
 */
import { condition } from '@temporalio/workflow';

import type { GroupResult, RolloutInput } from '../core/contract.ts';
import { deadlineOf, planGivenJudging, summariseAwaited, type Over } from '../core/plan-given.ts';
import type { Run } from './run.ts';
import type { StepInHand } from './step-in-hand.ts';

/** Resolves once every group is decided, with the results in the order of the groups. */
export async function awaitRewards(
  run: Run,
  inHand: StepInHand,
  groups: readonly RolloutInput[],
): Promise<GroupResult[]> {
  if (groups.length === 0) return [];
  const wait = new Wait(run, inHand, groups);
  try {
    return await wait.forAll();
  } finally {
    run.status.endAwaiting();
  }
}

class Wait {
  readonly #run: Run;
  readonly #inHand: StepInHand;
  readonly #groups: readonly RolloutInput[];
  readonly #decided = new Map<number, GroupResult>();
  /** Times at which groups were played, in milliseconds; known after the first look. */
  readonly #playedAt = new Map<number, number>();

  constructor(run: Run, inHand: StepInHand, groups: readonly RolloutInput[]) {
    this.#run = run;
    this.#inHand = inHand;
    this.#groups = groups;
  }

  async forAll(): Promise<GroupResult[]> {
    const { activities, controls, status } = this.#run;
    const { config } = controls;
    for (;;) {
      await this.#untilShown();
      controls.takeRewards();
      const { decided, waiting } = await activities.judgeGiven(this.#planLook());
      for (const result of decided) this.#decided.set(result.group, result);
      if (waiting.length === 0) return this.#groups.map(({ group }) => this.#decided.get(group)!);
      for (const each of waiting) {
        if (each.missing > 0 && !this.#playedAt.has(each.group))
          this.#playedAt.set(each.group, each.playedAt ?? Date.now());
      }
      // Some are left where one look decides no more of them.
      if (waiting.some(({ missing }) => missing === 0)) continue;
      const step = this.#inHand.step;
      const seen = summariseAwaited(config, step, waiting, [...this.#decided.values()], this.#playedAt);
      await this.#untilShown();
      await status.awaitRewards(this.#inHand, seen);
      await this.#sleep(waiting.map(({ group }) => group));
    }
  }

  /** Handlers of messages issue their commands first: see `RunStatus.isShowing`. */
  async #untilShown(): Promise<void> {
    await condition(() => !this.#run.status.isShowing);
  }

  #planLook() {
    const { config } = this.#run.controls;
    const left = this.#groups.filter(({ group }) => !this.#decided.has(group));
    return planGivenJudging(config, left[0]!.branch, left, (group) => this.#whyOver(group));
  }

  /** A run that is stopped finishes its step with what was given. */
  #whyOver(group: number): Over | null {
    const { config, requested } = this.#run.controls;
    if (requested.stop) return 'stopped';
    const deadline = deadlineOf(config, this.#playedAt.get(group));
    return deadline !== null && Date.now() >= deadline ? 'timeout' : null;
  }

  async #sleep(waiting: readonly number[]): Promise<void> {
    const { controls, status } = this.#run;
    const { config } = controls;
    const isWoken = (): boolean => !status.isShowing && (controls.hasRewards || controls.requested.stop);
    const deadlines = waiting.map((group) => deadlineOf(config, this.#playedAt.get(group))).filter((at) => at !== null);
    if (deadlines.length === 0) await condition(isWoken);
    else await condition(isWoken, Math.max(1, Math.min(...deadlines) - Date.now()));
  }
}
