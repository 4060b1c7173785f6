/** A judge by its address: an OpenAI-compatible endpoint that the agent's file names. */
import { withoutSlash } from '../../core/names/addresses.ts';
import { badConfig } from '../../core/contract/failures.ts';
import { checkOptions } from '../options/check-options.ts';
import { checkBaseUrl } from '../../play/connections/providers.ts';
import { resolveJudgeName, type JudgeModel } from '../../play/judge/judge-model.ts';

/** An OpenAI-compatible endpoint that has no name here. */
export interface JudgeEndpoint {
  /** Base of `/chat/completions`, with `/v1` if the endpoint has it; a bare host gets `/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  /** Name in results and verdicts, before the model's name; default `endpoint`. */
  readonly name?: string;
  /** The environment variable that holds its key; without one none is sent. */
  readonly keyVariable?: string;
}

export function resolveJudge(judge: string | JudgeEndpoint): JudgeModel {
  return typeof judge === 'string' ? resolveJudgeName(judge) : resolveEndpoint(judge);
}

/** Its address is nowhere but in the process that asks: what a judge is called stands under hashes. */
function resolveEndpoint(endpoint: JudgeEndpoint): JudgeModel {
  const { baseUrl, model, name = 'endpoint', keyVariable } = checkOptions('ruler.judge', endpoint);
  const { host } = new URL(checkBaseUrl("the judge's baseUrl", baseUrl));
  if (typeof model !== 'string' || !/^[\w.:@/~+-]{1,120}$/.test(model))
    throw badConfig(`the judge's model must be the name of a model at ${host}, got ${JSON.stringify(model)}; pass it`);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name))
    throw badConfig(`the judge's name must be letters, digits and ._-, got ${JSON.stringify(name)}; pass another one`);
  return {
    kind: 'hosted',
    name: `${name}/${model}`,
    model,
    baseUrl: withoutSlash(baseUrl),
    keyVariable: keyVariable ?? null,
    maxTokensName: null,
  };
}
