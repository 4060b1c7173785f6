/** The tiniest attempt that has something to learn from: one call, whose digit is the reward. */
import { defineAgent } from 'temper-rl';

export default defineAgent({
  name: 'bench-digit',
  scenarios: Array.from({ length: 40 }, (_, index) => ({ id: `s${index}` })),

  async rollout({ scenario, openai, model }) {
    const messages = [{ role: 'user' as const, content: scenario.id }];
    const completion = await openai.chat.completions.create({ model, messages, max_tokens: 2 });
    return Number(completion.choices[0]?.message.content);
  },
});
