/** Sums of judges' costs. */
import type { JudgeSpending } from '../contract/contract.ts';

interface Paid {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly usd: number | null;
}

export const NOTHING_SPENT: JudgeSpending = { calls: 0, cached: 0, promptTokens: 0, completionTokens: 0, usd: 0 };

/** Cost of the answers to one question; no answers: the verdict was known. */
export function spendingOf(answers: readonly Paid[]): JudgeSpending {
  const paid = answers.map(({ promptTokens, completionTokens, usd }) => {
    return { calls: 1, cached: 0, promptTokens, completionTokens, usd };
  });
  return paid.length === 0 ? { ...NOTHING_SPENT, cached: 1 } : addSpendings(paid);
}

export function addSpendings(spendings: readonly JudgeSpending[]): JudgeSpending {
  return spendings.reduce(add, NOTHING_SPENT);
}

/** One of which it is not known what it cost makes the sum unknown. */
function add(left: JudgeSpending, right: JudgeSpending): JudgeSpending {
  return {
    calls: left.calls + right.calls,
    cached: left.cached + right.cached,
    promptTokens: left.promptTokens + right.promptTokens,
    completionTokens: left.completionTokens + right.completionTokens,
    usd: left.usd === null || right.usd === null ? null : left.usd + right.usd,
  };
}

/** `412 answers, 3 cached verdicts, 1204000 tokens, $1.84` */
export function describeSpending({ calls, cached, promptTokens, completionTokens, usd }: JudgeSpending): string {
  const parts = [
    `${calls} ${calls === 1 ? 'answer' : 'answers'}`,
    ...(cached === 0 ? [] : [`${cached} cached ${cached === 1 ? 'verdict' : 'verdicts'}`]),
    `${promptTokens + completionTokens} tokens`,
    usd === null ? 'at an unknown price' : `$${formatUsd(usd)}`,
  ];
  return parts.join(', ');
}

export function formatUsd(usd: number): string {
  return usd >= 1 ? usd.toFixed(2) : String(Number(usd.toPrecision(3)));
}
