/** Prices of hosted models in US dollars per million tokens: the project's own, and a dated table of list prices. */

export interface ModelPrice {
  readonly usdPerMillionInput: number;
  readonly usdPerMillionOutput: number;
}

/** Prices by `provider/model`. */
export type PriceTable = Readonly<Record<string, ModelPrice>>;

/** Day of github.com/Wei-Shaw/model-price-repo at f9ff1473, a copy of LiteLLM's table; prices of short prompts, not cached. */
export const LIST_PRICES_OF = '2026-07-24';

const LIST: Readonly<Record<string, readonly [input: number, output: number]>> = {
  'openai/gpt-5.5': [5, 30],
  'openai/gpt-5.4': [2.5, 15],
  'openai/gpt-5.4-mini': [0.75, 4.5],
  'openai/gpt-5.4-nano': [0.2, 1.25],
  'openai/gpt-5.2': [1.75, 14],
  'openai/gpt-5.1': [1.25, 10],
  'openai/gpt-5': [1.25, 10],
  'openai/gpt-5-mini': [0.25, 2],
  'openai/gpt-5-nano': [0.05, 0.4],
  'openai/gpt-4.1': [2, 8],
  'openai/gpt-4.1-mini': [0.4, 1.6],
  'openai/gpt-4.1-nano': [0.1, 0.4],
  'openai/gpt-4o': [2.5, 10],
  'openai/gpt-4o-mini': [0.15, 0.6],
  'openai/o3': [2, 8],
  'openai/o4-mini': [1.1, 4.4],
  'anthropic/claude-opus-4-6': [5, 25],
  'anthropic/claude-opus-4-5': [5, 25],
  'anthropic/claude-sonnet-4-6': [3, 15],
  'anthropic/claude-sonnet-4-5': [3, 15],
  'anthropic/claude-haiku-4-5': [1, 5],
  'gemini/gemini-3.1-pro-preview': [2, 12],
  'gemini/gemini-3-flash-preview': [0.5, 3],
  'gemini/gemini-2.5-pro': [1.25, 10],
  'gemini/gemini-2.5-flash': [0.3, 2.5],
  'gemini/gemini-2.5-flash-lite': [0.1, 0.4],
  'deepseek/deepseek-chat': [0.28, 0.42],
  'deepseek/deepseek-reasoner': [0.28, 0.42],
  'xai/grok-4.3': [1.25, 2.5],
};

/** Models are also named with the day of their snapshot: `gpt-5-mini-2025-08-07`, `claude-haiku-4-5-20251001`. */
const SNAPSHOT = /-\d{4}-?\d{2}-?\d{2}$/;

export interface FoundPrice extends ModelPrice {
  /** False: it is in the project's own table. */
  readonly isListed: boolean;
}

/** The project's price of a model, or else its list price; null if neither table has one. */
export function findPrice(own: PriceTable, model: string): FoundPrice | null {
  const names = [model, model.replace(SNAPSHOT, '')];
  const ownName = names.find((name) => Object.hasOwn(own, name));
  if (ownName !== undefined) return { ...own[ownName]!, isListed: false };
  const listed = names.find((name) => Object.hasOwn(LIST, name));
  if (listed === undefined) return null;
  const [usdPerMillionInput, usdPerMillionOutput] = LIST[listed]!;
  return { usdPerMillionInput, usdPerMillionOutput, isListed: true };
}

export function usdOfTokens(
  { usdPerMillionInput, usdPerMillionOutput }: ModelPrice,
  prompt: number,
  completion: number,
) {
  return (usdPerMillionInput * prompt + usdPerMillionOutput * completion) / 1e6;
}
