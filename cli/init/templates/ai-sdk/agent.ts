/** Learns the multiplication table, through the Vercel AI SDK. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText } from 'ai';
import { defineAgent } from 'temper-rl';

const numbers = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const table = numbers.flatMap((left) => numbers.map((right) => ({ id: `${left}x${right}`, left, right })));
const isHeldOut = ({ left, right }: (typeof table)[number]) => (left + right) % 4 === 3;

export default defineAgent({
  name: 'times-table',
  scenarios: table.filter((problem) => !isHeldOut(problem)),
  // Never trained on. Each problem is asked three times, because the model samples its answers.
  evalScenarios: [1, 2, 3].flatMap((round) =>
    table.filter(isHeldOut).map((problem) => ({ ...problem, id: `${problem.id}-${round}` })),
  ),

  async rollout({ scenario: { left, right }, model, baseURL, apiKey, fetch, signal }) {
    // The model that is trained, for generateText, streamText and agents of the AI SDK.
    const policy = createOpenAICompatible({ name: 'temper', baseURL, apiKey, fetch })(model);
    const { text } = await generateText({
      model: policy,
      prompt: `${left}*${right}=`,
      maxOutputTokens: 4,
      // Temper retries.
      maxRetries: 0,
      abortSignal: signal,
    });
    const correct = text === String(left * right);
    return { reward: correct ? 1 : 0, metrics: { correct } };
  },
});
