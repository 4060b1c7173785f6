/** The full edition, for a real model: an office's mailbox, with the Vercel AI SDK and tools in zod. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, tool } from 'ai';
import { defineAgent } from 'temper-rl';
import { EDITION, examScenarios, Office, scenarios, TASK, TOOLS, type Scenario } from '../email-search/office.ts';

export default defineAgent<Scenario>({
  name: 'ai-sdk-full',
  scenarios,
  evalScenarios: examScenarios,

  async rollout({ scenario, model, baseURL, apiKey, fetch, signal }) {
    const office = new Office(scenario);
    const provider = createOpenAICompatible({ name: 'temper', baseURL, apiKey, fetch });
    const { text, finishReason, steps } = await generateText({
      model: provider(model),
      system: TASK,
      prompt: office.question,
      tools: {
        search: tool({
          description: TOOLS.search.description,
          inputSchema: TOOLS.search.input,
          execute: (query) => office.search(query),
        }),
        read: tool({
          description: TOOLS.read.description,
          inputSchema: TOOLS.read.input,
          execute: ({ id }) => office.read(id),
        }),
      },
      stopWhen: stepCountIs(EDITION.maxTurns),
      maxOutputTokens: EDITION.maxTokensPerTurn,
      // Temper retries.
      maxRetries: 0,
      abortSignal: signal,
    });
    return office.grade(finishReason === 'stop' ? text : null, steps.length);
  },
});
