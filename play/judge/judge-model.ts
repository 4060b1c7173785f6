/**
 * The judge: `provider/model` by the providers' OpenAI-compatible endpoints, any other such endpoint by its address, or
 * the run's own engine. Addresses and keys never leave the process that asks: what stands in a run is the name alone.
 */
import { badConfig } from '../../core/contract/failures.ts';
import {
  costOf,
  findProvider,
  PROVIDER_NAMES,
  readKey,
  type Environment,
  type NamedModel,
  type Used,
} from '../connections/providers.ts';

/** Prefix of `engine/pocket` or `engine/demo@100`. */
const ENGINE = 'engine';

export interface HostedJudge extends NamedModel {
  readonly kind: 'hosted';
}

/** A base model or a checkpoint, on the engine that plays the run. */
export interface EngineJudge {
  readonly kind: 'engine';
  readonly name: string;
  readonly model: string;
}

export type JudgeModel = HostedJudge | EngineJudge;

/** Whether the name alone says who judges; an endpoint's is known to the agent's file. */
export function isJudgeName(name: string): boolean {
  return findNamed(name) !== null;
}

export function resolveJudgeName(judge: string): JudgeModel {
  const named = findNamed(judge);
  if (named !== null) return named;
  const names = [...PROVIDER_NAMES, ENGINE].join(', ');
  throw badConfig(
    `the judge must be provider/model, the provider one of ${names}, got ${JSON.stringify(judge)}; pass such a name, or { baseUrl, model, keyVariable }`,
  );
}

function findNamed(judge: string): JudgeModel | null {
  const [, provider = '', model = ''] = /^([a-z]+)\/([\w.:@/~+-]{1,150})$/.exec(judge) ?? [];
  if (provider === ENGINE && model !== '') return { kind: 'engine', name: judge, model };
  const known = model === '' ? null : findProvider(provider);
  // The parameters of a judge's request are the user's own.
  return known && { kind: 'hosted', ...known, name: judge, model, maxTokensName: null };
}

/** The key that a judge's provider asks for; null where it asks for none. */
export function requireJudgeKey(judge: JudgeModel, env: Environment): string | null {
  if (judge.kind === 'engine') return null;
  return readKey(`the judge ${judge.name}`, judge.keyVariable, env, ' where the command and the workers run');
}

/** US dollars for a million tokens, as the person who pays knows them. */
export interface Prices {
  readonly usdPerMillionInput: number | null;
  readonly usdPerMillionOutput: number | null;
}

/** Whether it will be known what an answer costs. */
export function hasPrice(judge: JudgeModel, { usdPerMillionInput, usdPerMillionOutput }: Prices): boolean {
  if (usdPerMillionInput !== null && usdPerMillionOutput !== null) return true;
  return judge.kind === 'engine' || judge.isFree === true || judge.reportsCost === true;
}

/** Null where nobody knows. */
export function priceOf(judge: JudgeModel, prices: Prices, used: Used): number | null {
  const { usdPerMillionInput: prompt, usdPerMillionOutput: completion } = prices;
  const price = prompt === null || completion === null ? null : { prompt, completion };
  return costOf(judge.kind === 'engine' ? { isFree: true } : judge, price, used);
}
