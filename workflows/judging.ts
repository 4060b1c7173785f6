/** What a run's judge has cost, and whether the next step may begin: money is counted here, it is not in the plan. */
import { NOT_JUDGED, type StepJudging } from '../core/run-summary.ts';
import type { JudgeSpending, RunConfig } from '../core/contract.ts';
import { addSpendings, formatUsd, NOTHING_SPENT } from '../core/judge-spending.ts';
import type { JudgedPart, StepInHand } from './step-in-hand.ts';

/** What continue-as-new carries of it. */
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

  /** Null where nobody judged yet. */
  get spent(): JudgeSpending | null {
    const { calls, cached } = this.#spent;
    return calls + cached === 0 ? null : this.#spent;
  }

  count(part: JudgedPart, { judgings }: StepInHand): void {
    judgings.push(part);
    this.#spent = addSpendings([this.#spent, part.spent]);
  }

  /** What judging a step came to, when all of its groups are judged. */
  finish({ judgings }: StepInHand): StepJudging {
    if (judgings.length === 0) return NOT_JUDGED;
    const { calls, cached, promptTokens, completionTokens, usd } = addSpendings(judgings.map(({ spent }) => spent));
    this.#lastStepUsd = usd ?? 0;
    const money = usd === null ? {} : { judgeUsd: usd };
    return {
      metrics: { judgeCalls: calls, judgeCached: cached, judgeTokens: promptTokens + completionTokens, ...money },
      seconds: { 'rollout.judge': Math.max(...judgings.map(({ seconds }) => seconds)) },
    };
  }

  /** What the store says was paid, that of work which was given up included. */
  recall(spent: JudgeSpending | null): void {
    if (spent !== null) this.#spent = { ...spent, cached: Math.max(spent.cached, this.#spent.cached) };
  }

  carried(): CarriedJudging {
    return { spent: this.#spent, lastStepUsd: this.#lastStepUsd };
  }

  /** Why the next step may not begin; null where it may. A step is taken to cost as much as the last one. */
  complaintAboutBudget({ judge, maxJudgeUsd }: RunConfig): string | null {
    if (judge === null || maxJudgeUsd === null) return null;
    const { usd } = this.#spent;
    if (usd === null || (usd < maxJudgeUsd && usd + this.#lastStepUsd <= maxJudgeUsd)) return null;
    const last = this.#lastStepUsd === 0 ? '' : `, the last step $${formatUsd(this.#lastStepUsd)}`;
    return `the judge ${judge} has cost $${formatUsd(usd)} of maxJudgeUsd $${formatUsd(maxJudgeUsd)}${last}`;
  }

  /** A bound that nothing is counted against would hold nobody back. */
  get isCostUnknown(): boolean {
    return this.#spent.usd === null;
  }
}
