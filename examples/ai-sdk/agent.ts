/** Looks a word up in a mailbox, with the Vercel AI SDK: `generateText` calls the tools until the model answers. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, tool } from 'ai';
import { defineAgent } from 'temper-rl';
import { EDITION, examScenarios, Lookup, scenarios, type Scenario } from '../email-search/lookup.ts';

// Schemas as the pocket model knows them, to the byte. Other models take zod's as well: `inputSchema: z.object({ … })`.
const queryInput = jsonSchema<{ query: string }>({
  type: 'object',
  properties: { query: { type: 'string' } },
  required: ['query'],
});
const idInput = jsonSchema<{ id: number }>({
  type: 'object',
  properties: { id: { type: 'number' } },
  required: ['id'],
});

export default defineAgent<Scenario>({
  name: 'ai-sdk',
  scenarios,
  evalScenarios: examScenarios,

  async rollout({ scenario, model, baseURL, apiKey, fetch, signal }) {
    const mailbox = new Lookup(scenario);
    const provider = createOpenAICompatible({ name: 'temper', baseURL, apiKey, fetch });
    const { text, finishReason, steps } = await generateText({
      model: provider(model),
      prompt: mailbox.question,
      tools: {
        search: tool({
          description: 'Ids of what has the word.',
          inputSchema: queryInput,
          execute: ({ query }) => mailbox.search(query),
        }),
        read: tool({
          description: 'The text of an id.',
          inputSchema: idInput,
          execute: ({ id }) => mailbox.read(id),
        }),
      },
      stopWhen: stepCountIs(EDITION.maxTurns),
      maxOutputTokens: EDITION.maxTokensPerTurn,
      // Temper retries.
      maxRetries: 0,
      abortSignal: signal,
    });
    return mailbox.grade(finishReason === 'stop' ? text : null, steps.length);
  },
});
