// This Mastra takes models of AI SDK 5.
import { createOpenAICompatible } from 'ai-sdk-5-openai-compatible';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { MAX_TOKENS, MAX_TURNS, notesAgent, TOOLS } from './task.ts';

/** Mastra writes it into the schema of each tool, where the others write nothing and `pocket-tools` has not learned it. */
const ADDED = ',"additionalProperties":false';

export default notesAgent('mastra', async (research, { baseURL, apiKey, fetch, model, temperature }) => {
  const asOthers: typeof fetch = (url, init) => {
    const body = String(init?.body);
    if (!body.includes(ADDED)) throw new Error(`Mastra does not write ${ADDED} any more: remove this`);
    return fetch(url, { ...init, body: body.replaceAll(ADDED, '') });
  };
  const provider = createOpenAICompatible({ name: 'temper', baseURL, apiKey, fetch: asOthers });
  const agent = new Agent({
    name: 'researcher',
    instructions: '',
    model: provider(model),
    tools: {
      search: createTool({
        id: 'search',
        description: TOOLS.search.description,
        inputSchema: z.object({ query: z.string() }),
        execute: async ({ context }) => research.search(context),
      }),
      read: createTool({
        id: 'read',
        description: TOOLS.read.description,
        inputSchema: z.object({ id: z.number() }),
        execute: async ({ context }) => research.read(context),
      }),
    },
  });
  const { steps, finishReason } = await agent.generate(research.question, {
    maxSteps: MAX_TURNS,
    // Without it, Mastra asks for 0.
    modelSettings: { temperature, maxOutputTokens: MAX_TOKENS, maxRetries: 0 },
  });
  // Its own `text` joins those of all turns.
  return finishReason === 'tool-calls' ? null : steps.at(-1)?.text;
});
