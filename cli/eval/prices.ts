/** What tokens cost: as the person says, or as the server counts. Prices change: none is built in. */
import { stringFlags } from '../command.ts';
import type { Flags } from '../command.ts';
import { UsageError } from '../errors.ts';

/** US dollars for a million tokens. */
export interface Price {
  readonly prompt: number;
  readonly completion: number;
}

const MILLION = 1e6;
const EXAMPLE = 'openai/gpt-5=1.25/10 (US dollars for a million tokens, read and written)';

/** By the model's name, as `--model` says it. */
export function parsePrices(flags: Flags, models: readonly string[]): ReadonlyMap<string, Price> {
  return new Map(
    stringFlags(flags, 'price').map((text) => {
      const [, model, prompt, completion] = /^(.+)=(\d+(?:\.\d+)?)\/(\d+(?:\.\d+)?)$/.exec(text) ?? [];
      if (model === undefined)
        throw new UsageError(`--price must be MODEL=IN/OUT, got ${JSON.stringify(text)}; write ${EXAMPLE}`);
      if (!models.includes(model))
        throw new UsageError(`--price ${model} has no effect: it is none of the models; name it with --model`);
      return [model, { prompt: Number(prompt), completion: Number(completion) }];
    }),
  );
}

export function costOf(price: Price, promptTokens: number, completionTokens: number): number {
  return (price.prompt * promptTokens + price.completion * completionTokens) / MILLION;
}
