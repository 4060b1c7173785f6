/** Options of `workflowAgent`, and what its functions are given. */

import type { Agent, RolloutContext, RolloutResult, Scenario, ScenarioSource } from '../../play/agent.ts';

/** Something that a workflow did or was told. */
export type HistoryEntry =
  | { readonly kind: 'signal' | 'update'; readonly name: string; readonly args: readonly unknown[] }
  | {
      readonly kind: 'activity' | 'child';
      readonly name: string;
      readonly args: readonly unknown[];
      /** Undefined where it has not ended, or has failed. */
      readonly result?: unknown;
      /** Message of its failure. */
      readonly failure?: string;
    };

/** Temporal's `DataConverter`, spelled out: a project that checks its libraries' types could not compile Temporal's. */
interface DataConversion {
  readonly payloadConverterPath?: string;
  readonly failureConverterPath?: string;
  readonly payloadCodecs?: readonly object[];
}

/** For activities that call the model by HTTP. The key is the attempt's own, and is revoked when the attempt ends. */
export interface ModelAddress {
  /** Listens on this machine alone. Ends in `/v1`. */
  readonly baseURL: string;
  readonly apiKey: string;
  /** To be passed as `model`. */
  readonly model: string;
}

/** Parts of a rollout's context that act on the attempt. */
type AttemptParts = Pick<RolloutContext, 'hosted' | 'once' | 'random' | 'signal' | 'metric' | 'log'>;

/** A workflow that has ended. */
export interface FinishedWorkflow<S extends Scenario> extends AttemptParts {
  readonly scenario: S;
  /** Signals, updates, activities and child workflows, in their order; read when it is asked for. */
  readonly history: Promise<readonly HistoryEntry[]>;
}

/** A running workflow. What changes it happens once, however often the attempt is repeated. */
export interface RunningWorkflow {
  readonly workflowId: string;
  signal(name: string, ...args: readonly unknown[]): Promise<void>;
  update(name: string, ...args: readonly unknown[]): Promise<unknown>;
  query(name: string, ...args: readonly unknown[]): Promise<unknown>;
}

export interface InteractContext<S extends Scenario> extends AttemptParts {
  readonly scenario: S;
  readonly workflow: RunningWorkflow;
}

type RewardFunction<S extends Scenario, Result> = (
  result: Result,
  finished: FinishedWorkflow<S>,
) => RolloutResult | Promise<RolloutResult>;

export interface WorkflowAgentOptions<S extends Scenario, Result = unknown> {
  /** Lower case letters, digits and ._- */
  name: string;
  scenarios: ScenarioSource<S>;
  evalScenarios?: ScenarioSource<S>;
  spreadBy?: string;
  /** Type of the workflow. */
  workflow: string;
  /** The queue that your workers poll. */
  taskQueue: string;
  /** Arguments of the workflow; by default the scenario. */
  args?: (scenario: S, model: ModelAddress) => readonly unknown[];
  /** Fields of the workflow's memo, for activities that find the model there. */
  memo?: (scenario: S, model: ModelAddress) => Readonly<Record<string, unknown>>;
  /** Headers of the workflow, for interceptors of yours. */
  headers?: (scenario: S, model: ModelAddress) => Readonly<Record<string, unknown>>;
  /** Makes the reward of a workflow's result; or a judge of the whole group. */
  reward: RewardFunction<S, Result> | NonNullable<Agent<S>['reward']>;
  /** Plays the people around the workflow: approves, answers, sends signals and updates. */
  interact?: (context: InteractContext<S>) => void | Promise<void>;
  /** `modelParams` of your client's `OpenAIAgentsPlugin`, such as `{ streamingTopic: 'events' }`. */
  modelParams?: Readonly<Record<string, unknown>>;
  /** Types of activities that go to `sandboxQueue`, in workers that have `temperPlugin()`. */
  rerouteActivities?: readonly string[];
  /** Default: `taskQueue` with `-sandbox` after it. */
  sandboxQueue?: string;
  /** Server of your workers; by default that of the run, as `temporal.toml` and TEMPORAL_* have it. */
  address?: string;
  namespace?: string;
  /** A profile of `temporal.toml`, for servers with TLS or an API key. */
  profile?: string;
  /** That of your workers, where it is not Temporal's own: for encrypted payloads. */
  dataConverter?: DataConversion;
}
