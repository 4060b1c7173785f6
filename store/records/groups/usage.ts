/** Tokens of attempts, counted from their records: the same attempts give the same numbers. */
import type { HostedUsage, Usage } from '../../../core/contract/contract.ts';
import { addHosted } from '../../../core/rules/costs.ts';
import { findPrice, usdOfTokens, type PriceTable } from '../../../core/numbers/prices.ts';
import { inPlayOrder, type AttemptRecord, type CallRecord, type HostedCallRecord } from './trajectories.ts';

/** Attempts of one group, or of an evaluation. */
export function usageOfAttempts(attempts: readonly AttemptRecord[], prices: PriceTable): Usage {
  const calls = attempts.flatMap((attempt) => attempt.calls);
  const hosted = attempts.flatMap(({ hostedCalls = [] }) => hostedCalls);
  return {
    promptTokens: count(calls, ({ promptTokenIds }) => promptTokenIds.length),
    cachedPromptTokens: countCached(attempts),
    sampledTokens: count(calls, ({ tokenIds }) => tokenIds.length),
    ...(hosted.length > 0 && { hosted: hosted.map((call) => usageOfHosted(call, prices)).reduce(addHosted) }),
  };
}

/** Its own price is the first that counts; what a model refused costs nothing. */
function usageOfHosted(
  { model, promptTokens, completionTokens, usd }: HostedCallRecord,
  prices: PriceTable,
): HostedUsage {
  const [prompt, completion] = [promptTokens ?? 0, completionTokens ?? 0];
  const price = usd === null && promptTokens !== null && completionTokens !== null ? findPrice(prices, model) : null;
  const known = usd ?? (price === null ? null : usdOfTokens(price, prompt, completion));
  const tokens = { calls: 1, promptTokens: prompt, completionTokens: completion };
  return known === null ? { ...tokens, usd: 0, unpriced: [model] } : { ...tokens, usd: known };
}

/** A turn repeats the turn before it, and an attempt begins as the first one of its group. */
function countCached(attempts: readonly AttemptRecord[]): number {
  let [cached, first] = [0, null as CallRecord | null];
  for (const { calls } of attempts) {
    let before: CallRecord | null = null;
    for (const call of inPlayOrder(calls)) {
      const known = [first, before].filter((each) => each !== null);
      cached += Math.max(0, ...known.map((each) => countShared(call.promptTokenIds, each)));
      first ??= call;
      before = call;
    }
  }
  return cached;
}

/** The last token of a prompt is always computed: its answer begins with it. */
function countShared(prompt: readonly number[], { promptTokenIds, tokenIds }: CallRecord): number {
  const length = Math.min(prompt.length - 1, promptTokenIds.length + tokenIds.length);
  for (let index = 0; index < length; index++) {
    const token = index < promptTokenIds.length ? promptTokenIds[index] : tokenIds[index - promptTokenIds.length];
    if (prompt[index] !== token) return index;
  }
  return Math.max(0, length);
}

function count(calls: readonly CallRecord[], tokens: (call: CallRecord) => number): number {
  return calls.reduce((sum, call) => sum + tokens(call), 0);
}
