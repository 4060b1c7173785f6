/** Looks a word up in a mailbox, with the Vercel AI SDK: `generateText` calls the tools until the model answers. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, tool } from 'ai';
import { defineAgent } from 'temper-rl';
import { MAX_TOKENS_PER_TURN, MAX_TURNS } from '../grade.ts';
import { Inbox } from '../inbox.ts';
import { examScenarios, scenarios, type Scenario } from '../mailbox.ts';

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
    const inbox = new Inbox(scenario);
    const provider = createOpenAICompatible({ name: 'temper', baseURL, apiKey, fetch });
    const { text, finishReason, steps } = await generateText({
      model: provider(model),
      prompt: inbox.question,
      tools: {
        search: tool({
          description: 'Ids of what has the word.',
          inputSchema: queryInput,
          execute: ({ query }) => inbox.search(query),
        }),
        read: tool({
          description: 'The text of an id.',
          inputSchema: idInput,
          execute: ({ id }) => inbox.read(id),
        }),
      },
      stopWhen: stepCountIs(MAX_TURNS),
      maxOutputTokens: MAX_TOKENS_PER_TURN,
      // Temper retries.
      maxRetries: 0,
      abortSignal: signal,
    });
    return inbox.grade(finishReason === 'stop' ? text : null, steps.length);
  },
});
