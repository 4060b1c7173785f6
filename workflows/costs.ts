/**
 * Working time, tokens and money of a run, its judge's included, and its budgets. Times are those of the workflow's clock,
 * the same on replay; the plan reads nothing of this.
 */
import type {
  CostLedger,
  Evaluated,
  JudgeSpending,
  RunConfig,
  RunCosts,
  StepCosts,
  Usage,
} from '../core/contract/contract.ts';
import {
  addDollars,
  addUsages,
  EMPTY_LEDGER,
  findExceeded,
  NO_STEP,
  runBudgets,
  sumUsd,
  union,
  usdOfHours,
  type ExceededBudget,
} from '../core/rules/costs.ts';
import { addSpendings } from '../core/rules/judge-spending.ts';
import { NOT_JUDGED, type StepJudging } from '../core/plan/run-summary.ts';
import type { StepInHand } from './step-in-hand.ts';

type Spent = Pick<StepCosts, 'seconds' | 'usd'> & { usage?: Usage | undefined; unpriced?: readonly string[] };

export class Costs {
  #sums: CostLedger;
  /** Up to here, time is counted. */
  #countedMs = Date.now();

  constructor(carried: CostLedger | null) {
    this.#sums = carried ?? EMPTY_LEDGER;
  }

  /** For the run's state. */
  shown({ maxCostUsd, maxHours }: RunConfig): { costs: RunCosts; judging: JudgeSpending | null } {
    const { spent, judging } = this.#sums;
    const budgets = { ...(maxCostUsd !== null && { maxCostUsd }), ...(maxHours !== null && { maxHours }) };
    return { costs: { ...spent, ...budgets }, judging: isPaid(judging) ? judging : null };
  }

  carried(): CostLedger {
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

  /** Counts what judging a step has cost, finished or not. Nobody is paid for a function of the agent's own. */
  countJudging({ judge }: RunConfig, { judgings }: Pick<StepInHand, 'judgings'>): void {
    for (const { spent } of judgings.splice(0)) {
      if (!isPaid(spent)) continue;
      const { usd } = spent;
      this.#sums = { ...this.#sums, judging: addSpendings([this.#sums.judging, spent]) };
      this.#add({ seconds: 0, usd: usd === null ? {} : { judge: usd }, unpriced: usd === null ? [judge ?? ''] : [] });
    }
  }

  /** The costs of a finished step, for its line of the curve. */
  finishStep(config: RunConfig, inHand: Pick<StepInHand, 'judgings' | 'usage'>): StepCosts {
    const { usage } = inHand;
    this.countTime(config);
    this.countJudging(config, inHand);
    const usd = usage?.hosted?.usd;
    this.#add({ seconds: 0, usd: usd === undefined ? {} : { hosted: usd }, usage });
    const { sinceStep, spent } = this.#sums;
    this.#sums = { ...this.#sums, lastStep: sinceStep, sinceStep: NO_STEP };
    return { ...sinceStep, cumulativeUsd: sumUsd(spent.usd) };
  }

  /** Takes what the run had cost before it was resumed. */
  recall(before: CostLedger): void {
    const { spent, judging } = this.#sums;
    this.#sums = { ...before, judging: addSpendings([before.judging, judging]) };
    this.#add(spent);
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
