/**
 * Who judges: `provider/model` by the providers' OpenAI-compatible endpoints, any other such endpoint by its address, or
 * the run's own engine. Addresses and keys never leave the process that asks: what stands in a run is the name alone.
 */
import { TemperError } from '../../core/failures.ts';
import { checkOptions } from '../options.ts';
import { checkBaseUrl, costOf, findProvider, PROVIDER_NAMES, readVariable, type Used } from '../providers.ts';

/** As `engine/pocket` or `engine/demo@100`. */
const ENGINE = 'engine';

/** An OpenAI-compatible endpoint that has no name here. */
export interface JudgeEndpoint {
  /** As the `openai` client takes it, with `/v1` where the endpoint has it. */
  readonly baseUrl: string;
  readonly model: string;
  /** What it is called in results and verdicts; by default `endpoint`, before the model's name. */
  readonly name?: string;
  /** The environment variable that holds its key; without one none is sent. */
  readonly keyVariable?: string;
}

export interface HostedJudge {
  readonly kind: 'hosted';
  /** For people, and as part of verdicts' keys. */
  readonly name: string;
  readonly model: string;
  readonly baseUrl: string;
  /** Where the environment may name another address; null for one that was named in the agent's file. */
  readonly baseUrlVariable: string | null;
  /** Null where no key is asked for. */
  readonly keyVariable: string | null;
  /** Its answers say what they cost. */
  readonly tellsCost: boolean;
  /** Nobody sends a bill. */
  readonly isFree: boolean;
}

/** A base model or a checkpoint, on the engine that plays the run. */
export interface EngineJudge {
  readonly kind: 'engine';
  readonly name: string;
  readonly model: string;
}

export type JudgeModel = HostedJudge | EngineJudge;

export function resolveJudge(judge: string | JudgeEndpoint): JudgeModel {
  return typeof judge === 'string' ? resolveNamed(judge) : resolveEndpoint(judge);
}

/** Whether the name alone says who judges; an endpoint's is known to the agent's file. */
export function isJudgeName(name: string): boolean {
  return findNamed(name) !== null;
}

function resolveNamed(judge: string): JudgeModel {
  const named = findNamed(judge);
  if (named !== null) return named;
  const names = [...PROVIDER_NAMES, ENGINE].join(', ');
  throw new TemperError(
    'BadConfig',
    `the judge must be provider/model, the provider one of ${names}, got ${JSON.stringify(judge)}; pass such a name, or { baseUrl, model, keyVariable }`,
  );
}

function findNamed(judge: string): JudgeModel | null {
  const [, provider = '', model = ''] = /^([a-z]+)\/([\w.:@/~+-]{1,150})$/.exec(judge) ?? [];
  if (provider === ENGINE && model !== '') return { kind: 'engine', name: judge, model };
  const known = model === '' ? null : findProvider(provider);
  if (known === null) return null;
  const { baseUrl, baseUrlVariable, keyVariable, tellsCost = false, isFree = false } = known;
  return { kind: 'hosted', name: judge, model, baseUrl, baseUrlVariable, keyVariable, tellsCost, isFree };
}

/** Its address is nowhere but in the process that asks: what a judge is called stands under hashes. */
function resolveEndpoint(endpoint: JudgeEndpoint): JudgeModel {
  const { baseUrl, model, name = 'endpoint', keyVariable } = checkOptions('ruler.judge', endpoint);
  const { host } = new URL(checkBaseUrl("the judge's baseUrl", baseUrl));
  if (typeof model !== 'string' || !/^[\w.:@/~+-]{1,120}$/.test(model))
    throw new TemperError(
      'BadConfig',
      `the judge's model must be the name of a model at ${host}, got ${JSON.stringify(model)}; pass it`,
    );
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name))
    throw new TemperError(
      'BadConfig',
      `the judge's name must be letters, digits and ._-, got ${JSON.stringify(name)}; pass another one`,
    );
  return {
    kind: 'hosted',
    name: `${name}/${model}`,
    model,
    baseUrl: baseUrl.replace(/\/+$/, ''),
    baseUrlVariable: null,
    keyVariable: keyVariable ?? null,
    tellsCost: false,
    isFree: false,
  };
}

/** Where it is asked: a gateway of one's own stands in the environment. */
export function judgeUrl({ baseUrl, baseUrlVariable }: HostedJudge, env: NodeJS.ProcessEnv): string {
  const own = baseUrlVariable === null ? null : readVariable(env, baseUrlVariable);
  return own === null ? baseUrl : checkBaseUrl(baseUrlVariable ?? 'baseUrl', own);
}

/** The key that a judge's provider asks for; null where it asks for none. */
export function requireJudgeKey(judge: JudgeModel, env: NodeJS.ProcessEnv): string | null {
  if (judge.kind === 'engine' || judge.keyVariable === null) return null;
  const key = readVariable(env, judge.keyVariable);
  if (key !== null) return key;
  throw new TemperError(
    'BadConfig',
    `the judge ${judge.name} needs a key in ${judge.keyVariable}, which is not set; export it where the command and the workers run`,
  );
}

/** US dollars for a million tokens, as the person who pays knows them. */
export interface Prices {
  readonly usdPerMillionInput: number | null;
  readonly usdPerMillionOutput: number | null;
}

/** Whether it will be known what an answer costs. */
export function hasPrice(judge: JudgeModel, { usdPerMillionInput, usdPerMillionOutput }: Prices): boolean {
  if (usdPerMillionInput !== null && usdPerMillionOutput !== null) return true;
  return judge.kind === 'engine' || judge.isFree || judge.tellsCost;
}

/** Null where nobody knows. */
export function priceOf(judge: JudgeModel, prices: Prices, used: Used): number | null {
  const { usdPerMillionInput: prompt, usdPerMillionOutput: completion } = prices;
  const price = prompt === null || completion === null ? null : { prompt, completion };
  return costOf(judge.kind === 'engine' ? { isFree: true } : judge, price, used);
}
