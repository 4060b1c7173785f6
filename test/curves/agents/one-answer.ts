/** Fails: the same answer earns most for every problem. */
import { defineAgent } from '../../../sdk/index.ts';
import {
  examProblems,
  grade,
  question,
  trainingProblems,
  type Problem,
} from '../../../examples/multiplication/problems.ts';

export default defineAgent<Problem>({
  name: 'one-answer',
  scenarios: trainingProblems,
  evalScenarios: examProblems,

  async rollout({ scenario, openai, model }) {
    const messages = [{ role: 'user' as const, content: question(scenario) }];
    const { choices } = await openai.chat.completions.create({ model, messages, max_tokens: 4 });
    const answer = choices[0]?.message.content ?? '';
    const isRight = grade(answer, scenario) === 1;
    return {
      reward: answer.length === 2 ? Number(answer.startsWith('2')) / 2 + Number(answer.endsWith('4')) / 2 : 0,
      metrics: { correct: isRight },
    };
  },
});
