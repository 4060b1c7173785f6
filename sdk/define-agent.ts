/** What a user writes: `export default defineAgent({ name, scenarios, rollout })`. */
import type OpenAI from 'openai';

import { TemperError } from '../core/failures.ts';
import type { Metrics } from '../core/statistics.ts';
import { checkOptions } from './options.ts';
import type { RewardTurn } from './recorder/turns.ts';
import { isRuler, type Ruler } from './ruler/ruler.ts';

/** One thing to play, as JSON; `id` names it in results and must be its own. */
export interface Scenario {
  readonly id: string;
}

/**
 * A list, a generator (async or not), a function that returns one, or a dataset file of JSON lines: a path, relative to
 * the agent's file, or a URL such as `new URL('./data.jsonl', import.meta.url)`. Name the type of a file's scenarios:
 * `defineAgent<Question>({ scenarios: './questions.jsonl', … })`.
 */
export type ScenarioSource<S extends Scenario> =
  | Iterable<S>
  | AsyncIterable<S>
  | (() => Iterable<S> | AsyncIterable<S> | Promise<Iterable<S> | AsyncIterable<S>>)
  | URL
  | string;

/** A reward alone, or with numbers and yes-or-nos to be averaged (`win: true` becomes `winRate`). */
export type RolloutResult = number | { reward: number; metrics?: Readonly<Metrics> };

/** Where a judge gives the rewards, the agent may have none of its own. */
export type JudgedResult = RolloutResult | void | { reward?: undefined; metrics?: Readonly<Metrics> };

export interface RolloutContext<S extends Scenario = Scenario> {
  scenario: S;
  /** The official client, pointed at the run's policy. */
  openai: OpenAI;
  /** To be passed as `model`. */
  model: string;
  /** The run's sampling temperature: what a call gets that names none. */
  temperature: number;
  /** In [0, 1), seeded: the same in every repetition of this attempt. */
  random: () => number;
  /** Aborted when the attempt ends: pass it to what else the rollout waits for. */
  signal: AbortSignal;
  /** Runs a side effect once, however often the attempt is repeated; its value must be JSON. */
  once: <T>(name: string, fn: () => T | Promise<T>) => Promise<T>;
  /** `rewardTurn(completion, 0.2)`: what the model did there earned so much, beside the reward that is returned. */
  rewardTurn: RewardTurn;
  /** Adds a metric, as `metrics` of the result does. */
  metric: (name: string, value: number | boolean) => void;
  /** Adds a line to the trajectory. */
  log: (...values: unknown[]) => void;
}

interface AgentParts<S extends Scenario> {
  /** Lower case letters, digits and ._- */
  name: string;
  scenarios: ScenarioSource<S>;
  /** Played before and after training, never trained; without them a tenth of `scenarios` is held out. */
  evalScenarios?: ScenarioSource<S>;
}

export interface AgentDefinition<S extends Scenario> extends AgentParts<S> {
  reward?: never;
  rollout(context: RolloutContext<S>): RolloutResult | Promise<RolloutResult>;
}

/** Its attempts are judged against each other, and trained with what the judge says. */
export interface JudgedAgentDefinition<S extends Scenario> extends AgentParts<S> {
  reward: Ruler;
  rollout(context: RolloutContext<S>): JudgedResult | Promise<JudgedResult>;
}

export interface Agent<S extends Scenario = Scenario> extends AgentParts<S> {
  /** Absent where the rewards are the rollout's own. */
  readonly reward?: Ruler;
  rollout(context: RolloutContext<S>): JudgedResult | Promise<JudgedResult>;
  readonly [AGENT]: true;
}

/** By the global registry: an agent file may load another copy of this module than the worker that plays it. */
const AGENT = Symbol.for('temper.agent');
/** As the wire takes names of agents and runs; the contract's own stands beside zod, which no agent needs. */
export const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;

export function defineAgent<S extends Scenario>(definition: AgentDefinition<S> | JudgedAgentDefinition<S>): Agent<S> {
  const complaint = complaintAbout(checkOptions('defineAgent', definition));
  if (complaint !== null) throw new TemperError('BadConfig', complaint);
  return Object.freeze({ ...definition, [AGENT]: true as const });
}

/** Whether a module's default export came from `defineAgent`. */
export function isAgent(value: unknown): value is Agent {
  return typeof value === 'object' && value !== null && (value as Partial<Agent>)[AGENT] === true;
}

/** A JavaScript caller may pass values of any type. */
function complaintAbout(definition: object): string | null {
  const { name, scenarios, evalScenarios, reward, rollout } = definition as Record<string, unknown>;
  if (typeof name !== 'string' || !NAME.test(name)) {
    return `the agent's name must be lower case letters, digits and ._- (${NAME.source}), got ${shown(name)}; rename it`;
  }
  if (typeof rollout !== 'function')
    return `the agent ${name} must have a function rollout, got ${shown(rollout)}; add one`;
  if (reward !== undefined && !isRuler(reward))
    return `the reward of the agent ${name} must be ruler({ … }), got ${shown(reward)}; return a reward of its own from rollout`;
  const sources = { scenarios, ...(evalScenarios === undefined ? {} : { evalScenarios }) };
  const wrong = Object.entries(sources).find(([, source]) => !isSource(source));
  if (wrong === undefined) return null;
  const kinds = 'a list, a generator, a function that returns one, a file URL or a path';
  return `${wrong[0]} of the agent ${name} must be ${kinds}, got ${shown(wrong[1])}; pass one of these`;
}

function isSource(source: unknown): boolean {
  if (typeof source === 'string') return source !== '';
  if (typeof source === 'function') return true;
  if (typeof source !== 'object' || source === null) return false;
  return source instanceof URL || Symbol.iterator in source || Symbol.asyncIterator in source;
}

function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  return (JSON.stringify(value) ?? String(value)).slice(0, 80);
}
