/**
 * Working time, tokens and money of a run, its judge's included, and its budgets. Times are those of the workflow's clock,
 * the same on replay; the plan reads nothing of this.
 */
import type { Evaluated, JudgeSpending, RunConfig, RunCosts, StepCosts, Usage } from '../core/contract.ts';
import {
  addDollars,
  addUsages,
  findExceeded,
  NO_COSTS,
  runBudgets,
  sumUsd,
  union,
  usdOfHours,
  type ExceededBudget,
} from '../core/costs.ts';
import { addSpendings, NOTHING_SPENT } from '../core/judge-spending.ts';
import { NOT_JUDGED, type StepJudging } from '../core/run-summary.ts';
import type { JudgedPart, StepInHand } from './step-in-hand.ts';

type Spent = Pick<StepCosts, 'seconds' | 'usd'> & { usage?: Usage | undefined; unpriced?: readonly string[] };

/** The part that continue-as-new carries. */
export interface CarriedCosts {
  spent: RunCosts;
  /** Answers of the judge and their tokens; its money is in `spent`, too. */
  judging: JudgeSpending;
  lastStep: Pick<StepCosts, 'seconds' | 'usd'>;
  sinceStep: Pick<StepCosts, 'seconds' | 'usd'>;
}

const NOTHING = { seconds: 0, usd: {} };
const NOTHING_CARRIED: CarriedCosts = {
  spent: NO_COSTS,
  judging: NOTHING_SPENT,
  lastStep: NOTHING,
  sinceStep: NOTHING,
};

export class Costs {
  #sums: CarriedCosts;
  /** Up to here, time is counted. */
  #countedMs = Date.now();

  constructor(carried: CarriedCosts | null) {
    this.#sums = carried ?? NOTHING_CARRIED;
  }

  /** For the run's state. */
  shown({ maxCostUsd, maxHours }: RunConfig): { costs: RunCosts; judging: JudgeSpending | null } {
    const { spent, judging } = this.#sums;
    const budgets = { ...(maxCostUsd !== null && { maxCostUsd }), ...(maxHours !== null && { maxHours }) };
    return { costs: { ...spent, ...budgets }, judging: isPaid(judging) ? judging : null };
  }

  carried(): CarriedCosts {
    return this.#sums;
  }

  /** Counts the time until now, at the hardware's price until now. */
  countTime({ gpuUsdPerHour }: RunConfig): void {
    const seconds = (Date.now() - this.#countedMs) / 1000;
    this.#countedMs = Date.now();
    this.#add({ seconds, usd: usdOfHours(gpuUsdPerHour, seconds) });
  }

  /** Leaves out the time since it was last counted: the run was paused. */
  skipTime(): void {
    this.#countedMs = Date.now();
  }

  countEvaluation({ usage }: Pick<Evaluated, 'usage'>): void {
    const usd = usage?.hosted?.usd;
    this.#add({ seconds: 0, usd: usd === undefined ? {} : { eval: usd }, usage });
  }

  /** Nobody is paid for a function of the agent's own, and a judge may have no price. */
  countJudging({ judge }: RunConfig, part: JudgedPart, { judgings }: StepInHand): void {
    const { usd } = part.spent;
    judgings.push(part);
    this.#sums = { ...this.#sums, judging: addSpendings([this.#sums.judging, part.spent]) };
    if (!isPaid(part.spent)) return;
    this.#add({ seconds: 0, usd: usd === null ? {} : { judge: usd }, unpriced: usd === null ? [judge ?? ''] : [] });
  }

  /** The costs of a finished step, for its line of the curve. */
  finishStep(config: RunConfig, { usage }: Pick<StepInHand, 'usage'>): StepCosts {
    this.countTime(config);
    const usd = usage?.hosted?.usd;
    this.#add({ seconds: 0, usd: usd === undefined ? {} : { hosted: usd }, usage });
    const { sinceStep, spent } = this.#sums;
    this.#sums = { ...this.#sums, lastStep: sinceStep, sinceStep: NOTHING };
    return { ...sinceStep, cumulativeUsd: sumUsd(spent.usd) };
  }

  /** Takes what the run had cost before it was resumed. */
  recall(costs: RunCosts | undefined): void {
    if (costs !== undefined) this.#spend(costs);
  }

  /** Takes the spending that the store has, which includes cancelled work. */
  recallJudging(judging: JudgeSpending | null): void {
    if (judging === null) return;
    const { spent, judging: counted } = this.#sums;
    const usd = { ...spent.usd, ...(judging.usd !== null && { judge: judging.usd }) };
    const cached = Math.max(judging.cached, counted.cached);
    this.#sums = { ...this.#sums, judging: { ...judging, cached }, spent: { ...spent, usd } };
  }

  /** Why the next step may not begin; null if it may. The estimate for a step is the cost of the last one. */
  findExceeded(config: RunConfig): ExceededBudget | null {
    const { spent, lastStep } = this.#sums;
    return findExceeded(runBudgets(config, spent, lastStep));
  }

  #add(part: Spent): void {
    const { sinceStep } = this.#sums;
    const seconds = sinceStep.seconds + part.seconds;
    this.#sums = { ...this.#sums, sinceStep: { seconds, usd: addDollars(sinceStep.usd, part.usd) } };
    this.#spend(part);
  }

  #spend({ seconds, usd, usage, unpriced = usage?.hosted?.unpriced ?? [] }: Spent): void {
    const { spent } = this.#sums;
    const sums = {
      seconds: spent.seconds + seconds,
      usage: usage === undefined ? spent.usage : addUsages([spent.usage, usage]),
      usd: addDollars(spent.usd, usd),
      unpriced: union(spent.unpriced, unpriced),
    };
    this.#sums = { ...this.#sums, spent: sums };
  }
}

/** The result of judging a step, once all of its groups are judged. */
export function summariseJudging({ judgings }: StepInHand): StepJudging {
  if (judgings.length === 0) return NOT_JUDGED;
  const spent = addSpendings(judgings.map((judged) => judged.spent));
  const seconds = { 'rollout.judge': Math.max(...judgings.map((judged) => judged.seconds)) };
  if (!isPaid(spent)) return { metrics: {}, seconds };
  const { calls, cached, promptTokens, completionTokens, usd } = spent;
  const money = usd === null ? {} : { judgeUsd: usd };
  return {
    metrics: { judgeCalls: calls, judgeCached: cached, judgeTokens: promptTokens + completionTokens, ...money },
    seconds,
  };
}

function isPaid({ calls, cached }: JudgeSpending): boolean {
  return calls + cached > 0;
}
