/** Calls, tokens, cost and time of each attempt, as reported by the servers. */
import { costOf, readUsed, type HostedModel, type Price } from '../../play/connections/providers.ts';
import type { AnswerFacts } from '../../play/recorder/recorder.ts';

export interface AttemptCost {
  readonly attempt: number;
  readonly calls: number;
  /** Null if an answer did not report it. */
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly costUsd: number | null;
  /** Mean over calls. */
  readonly latencySeconds: number;
}

export class Ledger {
  readonly #facts = new Map<number, AnswerFacts[]>();

  add(facts: AnswerFacts): void {
    const known = this.#facts.get(facts.attempt) ?? [];
    known.push(facts);
    this.#facts.set(facts.attempt, known);
  }

  /** Costs per attempt, without those that made no call. */
  costs(price: Price | null, hosted: Pick<HostedModel, 'isFree' | 'tellsCost'> | null): AttemptCost[] {
    return [...this.#facts].map(([attempt, facts]) => {
      const promptTokens = total(facts, ({ usage }) => readUsed(usage).promptTokens);
      const completionTokens = total(facts, ({ usage }) => readUsed(usage).completionTokens);
      const seconds = facts.reduce((sum, { ms }) => sum + ms, 0) / 1000;
      const cost = total(facts, ({ usage }) => readUsed(usage).cost);
      const costUsd = costOf(hosted ?? {}, price, { promptTokens, completionTokens, cost });
      return {
        attempt,
        calls: facts.length,
        promptTokens,
        completionTokens,
        costUsd,
        latencySeconds: seconds / facts.length,
      };
    });
  }
}

function total(facts: readonly AnswerFacts[], value: (facts: AnswerFacts) => number | null): number | null {
  const values = facts.map(value);
  return values.reduce<number | null>((sum, each) => (sum === null || each === null ? null : sum + each), 0);
}
