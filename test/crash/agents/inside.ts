/** The twin of `outside.py`, in this process. */
import { defineAgent } from 'temper-rl';
import { questions, TURNS, type Questions } from './questions.ts';

export default defineAgent<Questions>({
  name: 'inside',
  scenarios: questions('train', 24),
  evalScenarios: questions('eval', 2),
  async rollout({ scenario, openai, model }) {
    let [{ left, right }, correct]: [Questions, number] = [scenario, 0];
    for (let turn = 0; turn < TURNS; turn++) {
      const messages = [{ role: 'user' as const, content: `${left}*${right}=` }];
      const { choices } = await openai.chat.completions.create({ model, messages, max_tokens: 4 });
      const answer = choices[0]?.message.content ?? '';
      correct += answer === String(left * right) ? 1 : 0;
      [left, right] = [right, 2 + (answer.length % 8)];
    }
    return { reward: correct / TURNS, metrics: { correct } };
  },
});
