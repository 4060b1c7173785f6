/** An attempt of the agent in which a sample stands for what the model would have said: a judge sees it as in a run. */
import { WorkFailed } from '../../core/contract/failures.ts';
import { DEFAULT_ROLLOUT } from '../../core/rules/run-defaults.ts';
import type { Agent, Scenario } from '../../play/agent.ts';
import type { EngineConnection } from '../../play/connections/engine-connection.ts';
import { conversationOf, type Conversation } from '../../store/records/judging/conversation.ts';
import type { AgentResources } from '../../play/resources/agent-resources.ts';
import { playSingle } from '../../play/single-attempt.ts';
import { AGENT_FILE, COMPLETE_TASK } from './agent-file.ts';

export interface SampleOptions {
  readonly agent: Agent;
  readonly resources: AgentResources | null;
  readonly signal: AbortSignal;
}

export async function playSample(
  sample: string,
  scenario: Scenario,
  attempt: number,
  { agent, resources, signal }: SampleOptions,
): Promise<Conversation> {
  const { record } = await playSingle({
    agent,
    engine: answering(sample),
    policy: { model: 'sample', adapterSha256: null },
    mode: 'text',
    rollout: DEFAULT_ROLLOUT,
    place: { seed: 1, branch: 0, step: 0 },
    signal,
    resources,
    planned: { attempt, scenarioIndex: 0, scenario },
  });
  if (record.failure === null) return conversationOf(record);
  throw new WorkFailed(
    `the rollout of ${AGENT_FILE} failed on the scenario ${scenario.id}: ${record.failure.message}; correct the file, and run the command again`,
  );
}

/** Says the sample, or hands it in where the agent has the tool for that. */
function answering(sample: string): EngineConnection {
  return {
    url: 'http://sample.invalid',
    keyVariable: null,
    post: (body) => {
      const { tools = [] } = JSON.parse(body) as { tools?: { function?: { name?: string } }[] };
      const handsIn = tools.some((tool) => tool.function?.name === COMPLETE_TASK);
      const text = JSON.stringify(
        handsIn ? completion(callOf(sample), 'tool_calls') : completion(sayOf(sample), 'stop'),
      );
      return Promise.resolve({ status: 200, retryAfter: null, text });
    },
    close: () => Promise.resolve(),
  };
}

function sayOf(content: string): object {
  return { role: 'assistant', content };
}

function callOf(summary: string): object {
  const call = { name: COMPLETE_TASK, arguments: JSON.stringify({ summary }) };
  return { role: 'assistant', content: null, tool_calls: [{ id: 'call-1', type: 'function', function: call }] };
}

function completion(message: object, finishReason: string): object {
  return {
    id: 'sample',
    object: 'chat.completion',
    created: 0,
    model: 'sample',
    choices: [{ index: 0, message, finish_reason: finishReason }],
  };
}
