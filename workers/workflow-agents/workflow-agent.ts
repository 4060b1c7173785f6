/** `temper-rl/temporal`: agents that are Temporal workflows of your own, played on workers of your own. */
import { badConfig, type TemperError, showValue } from '../../core/contract/failures.ts';
import type { Agent, RolloutContext, Scenario } from '../../play/agent.ts';
import { defineAgent } from '../../sdk/agent/define-agent.ts';
import { checkOptions } from '../../sdk/options/check-options.ts';
import type { WorkflowAgentOptions } from './options.ts';

export type {
  FinishedWorkflow,
  HistoryEntry,
  InteractContext,
  ModelAddress,
  RunningWorkflow,
  WorkflowAgentOptions,
} from './options.ts';

export { temperPlugin, type TemperPlugin } from './temper-plugin.ts';

/** Each attempt starts the workflow on the queue that your workers poll; the policy answers its model activities. */
export function workflowAgent<S extends Scenario, Result = unknown>(
  options: WorkflowAgentOptions<S, Result>,
): Agent<S> {
  checkOptions('workflowAgent', options);
  checkKinds(options);
  const { name, scenarios, evalScenarios, spreadBy, reward } = options;
  return defineAgent<S>({
    name,
    scenarios,
    ...(evalScenarios === undefined ? {} : { evalScenarios }),
    ...(spreadBy === undefined ? {} : { spreadBy }),
    ...(typeof reward === 'function' ? {} : { reward }),
    rollout: async (context: RolloutContext<S>) => {
      // A definition is read where nothing is played, too: Temporal's packages are loaded by the first attempt.
      const { playWorkflow } = await import('./play-workflow.ts');
      return playWorkflow(options, context);
    },
  } as Parameters<typeof defineAgent<S>>[0]);
}

interface Kind {
  readonly is: (value: unknown) => boolean;
  readonly rule: string;
  readonly remedy: string;
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const NAME: Kind = { is: isText, rule: 'a name', remedy: "pass a text such as 'support'" };
const FUNCTION: Kind = { is: (value) => typeof value === 'function', rule: 'a function', remedy: 'pass one' };
const OBJECT: Kind = {
  is: (value) => typeof value === 'object' && value !== null,
  rule: 'an object',
  remedy: 'pass one',
};
const NAMES: Kind = {
  is: (value) => Array.isArray(value) && value.every(isText),
  rule: 'a list of activity types',
  remedy: "pass ['refund']",
};

const KINDS = {
  workflow: NAME,
  taskQueue: NAME,
  sandboxQueue: NAME,
  address: NAME,
  namespace: NAME,
  profile: NAME,
  args: FUNCTION,
  memo: FUNCTION,
  headers: FUNCTION,
  interact: FUNCTION,
  modelParams: OBJECT,
  dataConverter: OBJECT,
  rerouteActivities: NAMES,
} as const satisfies Readonly<Record<string, Kind>>;

function checkKinds<S extends Scenario, R>(options: WorkflowAgentOptions<S, R>): void {
  for (const [name, { is, rule, remedy }] of Object.entries(KINDS) as [keyof typeof KINDS, Kind][]) {
    const value = options[name];
    if (value !== undefined && !is(value)) throw bad(`${name} of workflowAgent must be ${rule}`, value, remedy);
  }
}

function bad(rule: string, value: unknown, remedy: string): TemperError {
  return badConfig(`${rule}, got ${showValue(value)}; ${remedy}`);
}
