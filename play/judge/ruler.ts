/** A judge and how it is asked, as the reward of an agent whose attempts are compared. Plain data; what asks is elsewhere. */
import { badConfig } from '../../core/contract/failures.ts';
import { findPrice, type ModelPrice, type PriceTable } from '../../core/numbers/prices.ts';
import { hasPrice, resolveJudgeName, type JudgeModel, type Prices } from './judge-model.ts';

export interface Ruler extends Prices {
  readonly [RULER]: true;
  readonly judge: JudgeModel;
  readonly rubric: string;
  readonly weights: { readonly ruler: number; readonly agent: number };
  readonly maxCharsPerAttempt: number;
  readonly request: Readonly<Record<string, unknown>>;
}

/** Registered globally: an agent file may load another copy of this module than the worker that judges. */
export const RULER = Symbol.for('temper.ruler');

/** Less of an attempt tells nothing. */
export const LEAST_MAX_CHARS = 500;

/** Whether a value came from `ruler`. */
export function isRuler(value: unknown): value is Ruler {
  return typeof value === 'object' && value !== null && (value as Partial<Ruler>)[RULER] === true;
}

/** The ruler with another judge, by its name; what the first one's tokens cost says nothing of this one's. */
export function withJudge(ruler: Ruler, name: string): Ruler {
  if (ruler.judge.name === name) return ruler;
  return Object.freeze({
    ...ruler,
    judge: resolveJudgeName(name),
    usdPerMillionInput: null,
    usdPerMillionOutput: null,
  });
}

/** The ruler with a price from a table, unless it has one, or its judge tells what an answer costs. */
export function withPrices(ruler: Ruler, prices: PriceTable): Ruler {
  if (hasPrice(ruler.judge, ruler)) return ruler;
  const price = findPrice(prices, ruler.judge.name);
  return price === null ? ruler : Object.freeze({ ...ruler, ...pricesOf(price) });
}

function pricesOf({ usdPerMillionInput, usdPerMillionOutput }: ModelPrice): Prices {
  return { usdPerMillionInput, usdPerMillionOutput };
}

/** A budget that nothing is counted against would hold nobody back. */
export function checkBudget(ruler: Ruler): void {
  if (hasPrice(ruler.judge, ruler)) return;
  throw badConfig(
    `maxCostUsd has no effect while nothing of the run has a price, not even its judge ${ruler.judge.name}; set gpuUsdPerHour, or usdPerMillionInput and usdPerMillionOutput of ruler in the agent's file`,
  );
}
