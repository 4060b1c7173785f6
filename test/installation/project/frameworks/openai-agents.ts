import { Agent, MaxTurnsExceededError, OpenAIResponsesModel, run, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { MAX_TOKENS, MAX_TURNS, notesAgent, TOOLS } from './task.ts';

setTracingDisabled(true);

export default notesAgent('openai-agents', async (research, { baseURL, apiKey, fetch, model }) => {
  const client = new OpenAI({ baseURL, apiKey, fetch });
  const { search, read } = TOOLS;
  const agent = new Agent({
    name: 'researcher',
    model: new OpenAIResponsesModel(client as never, model),
    modelSettings: { maxTokens: MAX_TOKENS },
    tools: [
      tool({
        name: 'search',
        description: search.description,
        parameters: search.parameters as never,
        strict: false,
        execute: (input) => research.search(input as { query: string }),
      }),
      tool({
        name: 'read',
        description: read.description,
        parameters: read.parameters as never,
        strict: false,
        execute: (input) => research.read(input as { id: number }),
      }),
    ],
  });
  try {
    const { finalOutput } = await run(agent, research.question, { maxTurns: MAX_TURNS });
    return finalOutput;
  } catch (error) {
    if (error instanceof MaxTurnsExceededError) return null;
    throw error;
  }
});
