/** What tokens cost, as the person says. */
import type { Price } from '../../play/connections/providers.ts';
import { UsageError } from '../command-line/errors.ts';

const EXAMPLE = 'openai/gpt-5=1.25/10 (US dollars per million input and output tokens)';

/** By the model's name, as `--model` says it. */
export function parsePrices(texts: readonly string[], models: readonly string[]): ReadonlyMap<string, Price> {
  return new Map(
    texts.map((text) => {
      const [, model, prompt, completion] = /^(.+)=(\d+(?:\.\d+)?)\/(\d+(?:\.\d+)?)$/.exec(text) ?? [];
      if (model === undefined)
        throw new UsageError(`--price must be MODEL=IN/OUT, got ${JSON.stringify(text)}; write ${EXAMPLE}`);
      if (!models.includes(model))
        throw new UsageError(`--price ${model} has no effect: it is none of the models; name it with --model`);
      return [model, { prompt: Number(prompt), completion: Number(completion) }];
    }),
  );
}
