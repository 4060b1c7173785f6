/** `temper-rl/temporal`: agents that are Temporal workflows of your own, played on workers of your own. */
import type { Agent, RolloutContext, Scenario } from '../../play/agent.ts';
import { defineAgent } from '../../sdk/agent/define-agent.ts';
import { anything, callable, given, isText, must, optional, takes, text } from '../../sdk/options/options.ts';
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

const named = text("pass a text such as 'support'", 'a name');
const object = must('an object', (value) => typeof value === 'object' && value !== null, 'pass one').optional();
const fn = callable('pass one').optional();

const checkOptions = takes<WorkflowAgentOptions<Scenario>>('workflowAgent', {
  ...given('name', 'scenarios'),
  workflow: named,
  taskQueue: named,
  reward: anything,
  ...optional('evalScenarios', 'spreadBy'),
  args: fn,
  memo: fn,
  headers: fn,
  interact: fn,
  modelParams: object,
  rerouteActivities: must(
    'a list of activity types',
    (value) => Array.isArray(value) && value.every(isText),
    "pass ['refund']",
  ).optional(),
  sandboxQueue: named.optional(),
  address: named.optional(),
  namespace: named.optional(),
  profile: named.optional(),
  dataConverter: object,
});

/** Each attempt starts the workflow on the queue that your workers poll; the policy answers its model activities. */
export function workflowAgent<S extends Scenario, Result = unknown>(
  options: WorkflowAgentOptions<S, Result>,
): Agent<S> {
  checkOptions(options);
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
