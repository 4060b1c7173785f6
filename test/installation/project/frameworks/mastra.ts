// This Mastra takes models of AI SDK 5.
import { createOpenAICompatible } from 'ai-sdk-5-openai-compatible';
import { Agent } from '@mastra/core/agent';
import { jsonSchema, tool } from 'ai';
import { defineAgent } from 'temper-rl';
import { MAX_TOKENS, MAX_TURNS, Research, scenarios, TOOLS, type Notebook } from './task.ts';

export default defineAgent<Notebook>({
  name: 'notes',
  scenarios,
  async rollout(context) {
    const research = new Research(context);
    const { baseURL, apiKey, fetch, model, temperature } = context;
    const provider = createOpenAICompatible({ name: 'temper', baseURL, apiKey, fetch });
    const { search, read } = TOOLS;
    const agent = new Agent({
      name: 'researcher',
      instructions: '',
      model: provider(model),
      // Its own createTool adds additionalProperties to the schema, which stands in the prompt.
      tools: {
        search: tool({
          description: search.description,
          inputSchema: jsonSchema<{ query: string }>(search.parameters),
          execute: research.search,
        }),
        read: tool({
          description: read.description,
          inputSchema: jsonSchema<{ id: number }>(read.parameters),
          execute: research.read,
        }),
      },
    });
    const { text, finishReason } = await agent.generate(research.question, {
      maxSteps: MAX_TURNS,
      // Without it, Mastra asks for 0.
      modelSettings: { temperature, maxOutputTokens: MAX_TOKENS, maxRetries: 0 },
    });
    return research.reward(finishReason === 'tool-calls' ? null : text);
  },
});
