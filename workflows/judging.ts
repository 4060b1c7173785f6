/** The cost of a run's judge. Money is counted here and is no part of the plan. */
import { NOT_JUDGED, type StepJudging } from '../core/run-summary.ts';
import type { JudgeSpending, RunConfig } from '../core/contract.ts';
import type { Budget } from '../core/costs.ts';
import { addSpendings, NOTHING_SPENT } from '../core/judge-spending.ts';
import type { JudgedPart, StepInHand } from './step-in-hand.ts';

/** The part that continue-as-new carries. */
export interface CarriedJudging {
  spent: JudgeSpending;
  lastStepUsd: number;
}

export class Judging {
  #spent: JudgeSpending;
  #lastStepUsd: number;

  constructor(carried: CarriedJudging | null) {
    this.#spent = carried?.spent ?? NOTHING_SPENT;
    this.#lastStepUsd = carried?.lastStepUsd ?? 0;
  }

  /** Null before the first verdict. */
  get spent(): JudgeSpending | null {
    const { calls, cached } = this.#spent;
    return calls + cached === 0 ? null : this.#spent;
  }

  count(part: JudgedPart, { judgings }: StepInHand): void {
    judgings.push(part);
    this.#spent = addSpendings([this.#spent, part.spent]);
  }

  /** The result of judging a step, once all of its groups are judged. */
  finish({ judgings }: StepInHand): StepJudging {
    if (judgings.length === 0) return NOT_JUDGED;
    const { calls, cached, promptTokens, completionTokens, usd } = addSpendings(judgings.map(({ spent }) => spent));
    const seconds = { 'rollout.judge': Math.max(...judgings.map((judged) => judged.seconds)) };
    // A function of the agent's own: there was nobody to pay.
    if (calls + cached === 0) return { metrics: {}, seconds };
    this.#lastStepUsd = usd ?? 0;
    const money = usd === null ? {} : { judgeUsd: usd };
    return {
      metrics: { judgeCalls: calls, judgeCached: cached, judgeTokens: promptTokens + completionTokens, ...money },
      seconds,
    };
  }

  /** Takes the spending that the store has, which includes cancelled work. */
  recall(spent: JudgeSpending | null): void {
    if (spent !== null) this.#spent = { ...spent, cached: Math.max(spent.cached, this.#spent.cached) };
  }

  carried(): CarriedJudging {
    return { spent: this.#spent, lastStepUsd: this.#lastStepUsd };
  }

  /** Its limit, if it has one and its price is known. */
  budgets({ judge, maxJudgeUsd }: RunConfig): Budget[] {
    const { usd } = this.#spent;
    if (judge === null || usd === null) return [];
    const subject = `the judge ${judge} has cost`;
    return [{ setting: 'maxJudgeUsd', subject, limit: maxJudgeUsd, spent: usd, lastStep: this.#lastStepUsd }];
  }

  /** Unknown prices make a bound without effect. */
  get isCostUnknown(): boolean {
    return this.#spent.usd === null;
  }
}
