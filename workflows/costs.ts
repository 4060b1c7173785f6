/**
 * Working time, tokens and money of a run, and its budgets. Times are those of the workflow's clock, the same on replay;
 * the plan reads nothing of this.
 */
import type { Dollars, Evaluated, JudgeSpending, RunConfig, RunCosts, StepCosts, Usage } from '../core/contract.ts';
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
import type { Judging } from './judging.ts';
import type { StepInHand } from './step-in-hand.ts';

type Spent = Pick<StepCosts, 'seconds' | 'usd'>;

/** The part that continue-as-new carries. The judge's part is counted with its answers. */
export interface CarriedCosts {
  spent: RunCosts;
  lastStep: Spent;
  sinceStep: Spent;
}

const NOTHING: Spent = { seconds: 0, usd: {} };

export class Costs {
  readonly #judging: Judging;
  #spent: RunCosts;
  #lastStep: Spent;
  #sinceStep: Spent;
  /** Up to here, time is counted. */
  #countedMs = Date.now();

  constructor(carried: CarriedCosts | null, judging: Judging) {
    this.#spent = carried?.spent ?? NO_COSTS;
    this.#lastStep = carried?.lastStep ?? NOTHING;
    this.#sinceStep = carried?.sinceStep ?? NOTHING;
    this.#judging = judging;
  }

  total({ judge, maxCostUsd, maxHours }: RunConfig): RunCosts {
    const { spent } = this.#judging;
    const usd = addDollars(this.#spent.usd, usdOfJudge(spent));
    const isUnpriced = judge !== null && spent !== null && spent.usd === null;
    return {
      ...this.#spent,
      usd,
      unpriced: union(this.#spent.unpriced, isUnpriced ? [judge] : []),
      ...(maxCostUsd !== null && { maxCostUsd }),
      ...(maxHours !== null && { maxHours }),
    };
  }

  carried(): CarriedCosts {
    return { spent: this.#spent, lastStep: this.#lastStep, sinceStep: this.#sinceStep };
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
    this.#add({ seconds: 0, usd: usd === undefined ? {} : { eval: usd } }, usage);
  }

  /** The costs of a finished step, for its line of the curve. */
  finishStep(config: RunConfig, { judgings, usage }: Pick<StepInHand, 'judgings' | 'usage'>): StepCosts {
    this.countTime(config);
    const usd = usage?.hosted?.usd;
    this.#add({ seconds: 0, usd: usd === undefined ? {} : { hosted: usd } }, usage);
    const { seconds, usd: sinceStep } = this.#sinceStep;
    const judged = judgings.map(({ spent }) => usdOfJudge(spent));
    this.#lastStep = { seconds, usd: judged.reduce(addDollars, sinceStep) };
    this.#sinceStep = NOTHING;
    return { ...this.#lastStep, cumulativeUsd: sumUsd(this.total(config).usd) };
  }

  /** Takes what the run had cost before it was resumed. */
  recall(costs: RunCosts | undefined): void {
    if (costs === undefined) return;
    const { judge: _counted, ...usd } = costs.usd;
    const { seconds, usage, unpriced } = this.#spent;
    this.#spent = {
      seconds: costs.seconds + seconds,
      usage: addUsages([costs.usage, usage]),
      usd: addDollars(usd, this.#spent.usd),
      unpriced: union(costs.unpriced, unpriced),
    };
  }

  /** Why the next step may not begin; null if it may. The estimate for a step is the cost of the last one. */
  findExceeded(config: RunConfig): ExceededBudget | null {
    return findExceeded([...this.#judging.budgets(config), ...runBudgets(config, this.total(config), this.#lastStep)]);
  }

  #add({ seconds, usd }: Spent, usage?: Usage): void {
    const spent = this.#spent;
    const since = this.#sinceStep;
    this.#sinceStep = { seconds: since.seconds + seconds, usd: addDollars(since.usd, usd) };
    this.#spent = {
      seconds: spent.seconds + seconds,
      usage: usage === undefined ? spent.usage : addUsages([spent.usage, usage]),
      usd: addDollars(spent.usd, usd),
      unpriced: union(spent.unpriced, usage?.hosted?.unpriced ?? []),
    };
  }
}

/** Nothing for a function of the agent's own, which nobody pays, and for a judge without a price. */
function usdOfJudge(spent: JudgeSpending | null): Pick<Dollars, 'judge'> {
  if (spent === null || spent.usd === null || spent.calls + spent.cached === 0) return {};
  return { judge: spent.usd };
}
