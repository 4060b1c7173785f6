/** `temper-rl/temporal`: agents that are Temporal workflows of your own, played on workers of your own. */
import { TemperError } from '../../core/failures.ts';
import type { Agent, RolloutContext, Scenario } from '../../play/agent.ts';
import { defineAgent } from '../../sdk/agent/define-agent.ts';
import { checkOptions } from '../../sdk/options/check-options.ts';
import { showOption } from '../../sdk/options/show-option.ts';
import type { WorkflowAgentOptions } from './options.ts';

export type { HistoryEntry } from './history.ts';
export type {
  FinishedWorkflow,
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
  checkTexts(options);
  const { name, scenarios, evalScenarios, reward } = options;
  return defineAgent<S>({
    name,
    scenarios,
    ...(evalScenarios === undefined ? {} : { evalScenarios }),
    ...(typeof reward === 'function' ? {} : { reward }),
    rollout: async (context: RolloutContext<S>) => {
      // A definition is read where nothing is played, too: Temporal's packages are loaded by the first attempt.
      const { playWorkflow } = await import('./play-workflow.ts');
      return playWorkflow(options, context);
    },
  } as Parameters<typeof defineAgent<S>>[0]);
}

function checkTexts<S extends Scenario, R>(options: WorkflowAgentOptions<S, R>): void {
  const { rerouteActivities = [] } = options;
  for (const name of ['workflow', 'taskQueue', 'sandboxQueue', 'address', 'namespace', 'profile'] as const) {
    const value = options[name];
    if (value !== undefined && (typeof value !== 'string' || value === ''))
      throw bad(`${name} of workflowAgent must be a name`, value, "pass a text such as 'support'");
  }
  if (!Array.isArray(rerouteActivities) || !rerouteActivities.every((each) => typeof each === 'string' && each !== ''))
    throw bad(
      'rerouteActivities of workflowAgent must be a list of activity types',
      rerouteActivities,
      "pass ['refund']",
    );
  for (const name of ['modelParams', 'dataConverter'] as const)
    if (options[name] !== undefined && (typeof options[name] !== 'object' || options[name] === null))
      throw bad(`${name} of workflowAgent must be an object`, options[name], 'pass one');
  for (const name of ['args', 'memo', 'headers', 'interact'] as const)
    if (options[name] !== undefined && typeof options[name] !== 'function')
      throw bad(`${name} of workflowAgent must be a function`, options[name], 'pass one');
}

function bad(rule: string, value: unknown, remedy: string): TemperError {
  return new TemperError('BadConfig', `${rule}, got ${showOption(value)}; ${remedy}`);
}
