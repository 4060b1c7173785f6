/** The agent that tries scenarios: one answer to a task's input, or a loop with the server's tools. */
import type { Agent, RolloutContext } from '../../play/agent.ts';
import { defineAgent } from '../../sdk/agent/define-agent.ts';
import { mcp } from '../../sdk/mcp/mcp.ts';
import { tool } from '../../sdk/tools/tool.ts';
import { toolLoop } from '../../sdk/tools/tool-loop.ts';
import { START_TIMEOUT_MS, type ScenarioOrigin } from './origin.ts';
import type { ScenarioRow } from './make-plan.ts';

interface TriedAgentOptions {
  readonly origin: ScenarioOrigin;
  readonly maxTurns: number;
  /** Folder in which MCP servers are started. */
  readonly folder: string;
}

export function createTriedAgent({ origin, maxTurns, folder }: TriedAgentOptions): Agent<ScenarioRow> {
  const rollout = origin.kind === 'task' ? answerOnce(origin.task) : useTools(origin, maxTurns);
  const agent = defineAgent<ScenarioRow>({ name: 'scenarios', scenarios: [], rollout });
  return Object.freeze({ ...agent, folder });
}

type Rollout = (context: RolloutContext<ScenarioRow>) => Promise<number>;

/** Whether it was solved is decided from the recorded conversation. */
const NO_REWARD = 0;

function answerOnce(task: string): Rollout {
  return async ({ openai, model, scenario }) => {
    const system = { role: 'system' as const, content: task };
    const user = { role: 'user' as const, content: scenario.task };
    await openai.chat.completions.create({ model, messages: [system, user] });
    return NO_REWARD;
  };
}

/** Ends the loop; the summary is what the user gets. */
const completeTask = tool({
  name: 'complete_task',
  description: 'Hands in the finished task.',
  parameters: {
    type: 'object',
    properties: { summary: { type: 'string', description: 'what you did, and all that the user asked to know' } },
    required: ['summary'],
  },
  ends: true,
  run: () => 'ok',
});

function useTools({ options, server }: Extract<ScenarioOrigin, { kind: 'mcp' }>, maxTurns: number): Rollout {
  const tools = mcp({ ...options, isolate: !server.isReadOnly, startTimeoutMs: START_TIMEOUT_MS });
  return async (context) => {
    const system = {
      role: 'system' as const,
      content: `You do the task of the user with your tools, in at most ${maxTurns} turns. Nobody answers questions. When the task is done, call complete_task.`,
    };
    const user = { role: 'user' as const, content: context.scenario.task };
    await toolLoop(context, {
      messages: [system, user],
      tools: [...(await tools.tools(context)), completeTask],
      maxTurns,
    });
    return NO_REWARD;
  };
}
