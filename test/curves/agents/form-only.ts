/** Fails: round numbers are paid, right or wrong. */
import { defineAgent } from '../../../sdk/index.ts';
import {
  examProblems,
  grade,
  question,
  trainingProblems,
  type Problem,
} from '../../../examples/multiplication/problems.ts';

export default defineAgent<Problem>({
  name: 'form-only',
  scenarios: trainingProblems,
  evalScenarios: examProblems,

  async rollout({ scenario, openai, model }) {
    const messages = [{ role: 'user' as const, content: question(scenario) }];
    const { choices } = await openai.chat.completions.create({ model, messages, max_tokens: 4 });
    const answer = choices[0]?.message.content ?? '';
    const isRound = /^\d+0$/.test(answer);
    return { reward: Number(isRound), metrics: { correct: grade(answer, scenario) === 1, round: isRound } };
  },
});
