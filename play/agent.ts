/** An agent, as what plays it sees it: where its scenarios come from, and what its rollout is given and returns. */
import type { RewardWeights } from '../core/rules/named-rewards.ts';
import type { Metrics } from '../core/numbers/statistics.ts';
import type { Hosted } from './hosted/hosted.ts';
import type { RoleDefinitions, RoleResult } from './roles/role-definition.ts';
import type { ModelClient } from './transports/model-client.ts';
import type { RewardTurn } from './recorder/turns.ts';
import type { Conversation } from '../store/records/judging/conversation.ts';
import type { External } from './external.ts';
import type { Ruler } from './judge/ruler.ts';
import type { NoResources, Resources, ResourceValues } from './resources/resource.ts';
import type { ToolServer } from './mcp/tool-server.ts';
import type { Rewrite } from './programs/program.ts';

/** One thing to play, as JSON; `id` names it in results and must be its own. */
export interface Scenario {
  readonly id: string;
}

/**
 * A list, a generator (async or not), a function that returns one, a source such as `csv('questions.csv', { map })`, or a
 * dataset file: a path, relative to the agent's file, or a URL such as `new URL('./data.jsonl', import.meta.url)`. It
 * holds JSON lines unless it ends in `.csv`, `.tsv` or `.parquet`. Name the type of a file's scenarios:
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

/** The agent's own reward is optional if a judge gives the rewards. */
export type JudgedResult = RolloutResult | void | { reward?: undefined; metrics?: Readonly<Metrics> };

/** One reward for each name that the agent has a weight for. */
export interface NamedResult<N extends string = string> {
  rewards: Readonly<Record<N, number>>;
  metrics?: Readonly<Metrics>;
}

/** Some of them: `rewardGroup` and the rollout together give all. */
export type PartialRewards<N extends string = string> = Readonly<Partial<Record<N, number>>>;

export type PartialResult<N extends string = string> = void | {
  rewards?: PartialRewards<N>;
  metrics?: Readonly<Metrics>;
};

type AgentResult = JudgedResult | PartialResult | RoleResult;

/** A finished attempt as `rewardGroup` sees it: its conversation, and what the rollout made of it. */
export interface FinishedAttempt extends Conversation {
  /** Its number in the group. */
  readonly attempt: number;
  /** The rollout's own reward, rewards of turns included; null if it returned none. */
  readonly reward: number | null;
  /** Rewards that the rollout returned by name. */
  readonly rewards: PartialRewards;
  readonly metrics: Readonly<Metrics>;
  readonly logs: readonly string[];
  /** A call was cut at its token limit, or outgrew the model. */
  readonly truncated: boolean;
}

/** The attempts at one scenario that ended without a failure. */
export interface FinishedGroup<S extends Scenario = Scenario> {
  readonly scenario: S;
  readonly attempts: readonly FinishedAttempt[];
  /** Aborted when the run or the worker stops: pass it to what else the function waits for. */
  readonly signal: AbortSignal;
}

/** For each attempt in order: its reward, or, for an agent with weights, those that its rollout did not return. */
type GroupRewards = readonly (number | PartialRewards)[];

interface GatewayOptions {
  /** Changes each request of the process; see `Rewrite`. */
  rewrite?: Rewrite;
}

/** The client is the run's policy's. */
export interface RolloutContext<S extends Scenario = Scenario, R extends Resources = NoResources> extends ModelClient {
  scenario: S;
  /** Values that the setups of the agent's `resources` returned, by name. */
  resources: ResourceValues<R>;
  /**
   * The policy's address for another process on this machine, with a key that is valid until the attempt ends: OpenAI's
   * and Anthropic's clients take both.
   */
  gateway: (options?: GatewayOptions) => Promise<{ baseURL: string; apiKey: string }>;
  /**
   * Another model than the policy: `hosted('openai/gpt-5-mini')` has a client, or what an SDK's client needs. Its answers
   * are journaled, and never trained.
   */
  hosted: Hosted;
  /** A client for each role. An agent with roles calls these alone; empty without roles. */
  roles: Readonly<Record<string, ModelClient>>;
  /** The run's sampling temperature: what a call gets that names none. */
  temperature: number;
  /** In [0, 1), seeded: the same in every repetition of this attempt. */
  random: () => number;
  /** Aborted when the attempt ends: pass it to what else the rollout waits for. */
  signal: AbortSignal;
  /** Runs a side effect once, however often the attempt is repeated; its value must be JSON. */
  once: <T>(name: string, fn: () => T | Promise<T>) => Promise<T>;
  /**
   * `rewardTurn(completion, 0.2)`: what the model did there earned so much, beside the reward that is returned. The id of
   * the answer does as well.
   */
  rewardTurn: RewardTurn;
  /** Adds a metric, as `metrics` of the result does. */
  metric: (name: string, value: number | boolean) => void;
  /** Adds a line to the trajectory. */
  log: (...values: unknown[]) => void;
}

export interface AgentParts<S extends Scenario> {
  /** Lower case letters, digits and ._- */
  name: string;
  scenarios: ScenarioSource<S>;
  /** Played before and after training, never trained; without them a tenth of `scenarios` is held out. */
  evalScenarios?: ScenarioSource<S>;
  /** A field of each scenario, such as its label: where only a sample is played, its values are taken in turn. */
  spreadBy?: string;
  /**
   * Name of a hosted model that your code asks for with clients of its own. While an attempt is played, the policy
   * answers these calls of the global `fetch`; calls of other models go to the network.
   */
  captureModel?: string;
  /** Servers of `temper-rl/mcp` whose tools the attempts get: each is tried before anything is played. */
  mcp?: readonly ToolServer[];
}

export interface Agent<S extends Scenario = Scenario> extends AgentParts<S> {
  /** Absent where the rewards are the rollout's own. */
  readonly reward?: Ruler | External;
  readonly resources?: Resources;
  /** Folder of the agent's file, where its programs run; absent for an agent without a file. */
  readonly folder?: string;
  /** Weights of named rewards; absent where the reward is one number. */
  readonly rewards?: RewardWeights;
  /** Rewards a whole group at once; absent where each attempt is rewarded alone. */
  rewardGroup?(this: void, group: FinishedGroup<S>): GroupRewards | Promise<GroupRewards>;
  /** Absent where one policy plays. */
  readonly roles?: RoleDefinitions;
  /** One role wins what another loses. */
  readonly competing?: boolean;
  rollout(this: void, context: RolloutContext<S>): AgentResult | Promise<AgentResult>;
  readonly [AGENT]: true;
}

/** Registered globally: an agent file may load another copy of this module than the worker that plays it. */
export const AGENT = Symbol.for('temper.agent');

/** Whether a module's default export came from `defineAgent`. */
export function isAgent(value: unknown): value is Agent {
  return typeof value === 'object' && value !== null && (value as Partial<Agent>)[AGENT] === true;
}
