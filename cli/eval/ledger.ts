/** What each attempt took: calls, tokens, money and time, as the servers counted them. */
import type { HostedModel } from '../../sdk/providers.ts';
import type { AnswerFacts } from '../../sdk/recorder/recorder.ts';
import { costOf } from './prices.ts';
import type { Price } from './prices.ts';

export interface AttemptCost {
  readonly attempt: number;
  readonly calls: number;
  /** Null where an answer did not say. */
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly costUsd: number | null;
  /** Mean over its calls. */
  readonly latencySeconds: number;
}

export class Ledger {
  private readonly facts = new Map<number, AnswerFacts[]>();

  add(facts: AnswerFacts): void {
    const known = this.facts.get(facts.attempt) ?? [];
    known.push(facts);
    this.facts.set(facts.attempt, known);
  }

  /** Attempts that asked nothing are not among them. */
  costs(price: Price | null, hosted: Pick<HostedModel, 'isFree' | 'tellsCost'> | null): AttemptCost[] {
    return [...this.facts].map(([attempt, facts]) => {
      const promptTokens = total(facts, ({ usage }) => member(usage, 'prompt_tokens'));
      const completionTokens = total(facts, ({ usage }) => member(usage, 'completion_tokens'));
      const seconds = facts.reduce((sum, { ms }) => sum + ms, 0) / 1000;
      const counted = hosted?.tellsCost ? total(facts, ({ usage }) => member(usage, 'cost')) : null;
      const isPriced = price !== null && promptTokens !== null && completionTokens !== null;
      const unpriced = hosted?.isFree ? 0 : counted;
      const costUsd = isPriced ? costOf(price, promptTokens, completionTokens) : unpriced;
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

/** `cost` is in US dollars. */
function member(usage: unknown, name: 'prompt_tokens' | 'completion_tokens' | 'cost'): number | null {
  const value = (usage as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
}

function total(facts: readonly AnswerFacts[], value: (facts: AnswerFacts) => number | null): number | null {
  const values = facts.map(value);
  return values.reduce<number | null>((sum, each) => (sum === null || each === null ? null : sum + each), 0);
}
