/** Reads the amount from a receipt in prose, and learns to answer with the number alone. */
import { defineAgent } from 'temper-rl';
import { grade } from './grade.ts';
import { examReceipts, question, trainingReceipts, type Receipt } from './receipts.ts';

export default defineAgent<Receipt>({
  name: 'receipts',
  scenarios: trainingReceipts,
  evalScenarios: examReceipts,

  async rollout({ scenario, openai, model }) {
    const completion = await openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: question(scenario) }],
      max_tokens: 40,
    });
    const { reward, ...metrics } = grade(completion.choices[0]?.message.content ?? '', scenario);
    return { reward, metrics };
  },
});
