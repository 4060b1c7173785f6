import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, tool } from 'ai';
import { MAX_TOKENS, MAX_TURNS, notesAgent, TOOLS } from './task.ts';

export default notesAgent('ai-sdk', async (research, { baseURL, apiKey, fetch, model }) => {
  const provider = createOpenAICompatible({ name: 'temper', baseURL, apiKey, fetch });
  const { search, read } = TOOLS;
  const { text, finishReason } = await generateText({
    model: provider(model),
    prompt: research.question,
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
    stopWhen: stepCountIs(MAX_TURNS),
    maxOutputTokens: MAX_TOKENS,
    maxRetries: 0,
  });
  return finishReason === 'tool-calls' ? null : text;
});
