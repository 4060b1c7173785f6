/** Fails: a number is compared with a text, so no answer is ever right. */
import { defineAgent } from '../../../sdk/index.ts';
import { examProblems, question, trainingProblems, type Problem } from '../../../examples/multiplication/problems.ts';

export default defineAgent<Problem>({
  name: 'never',
  scenarios: trainingProblems,
  evalScenarios: examProblems,

  async rollout({ scenario, openai, model }) {
    const messages = [{ role: 'user' as const, content: question(scenario) }];
    const { choices } = await openai.chat.completions.create({ model, messages, max_tokens: 4 });
    const isRight = Object.is(choices[0]?.message.content, scenario.left * scenario.right);
    return { reward: Number(isRight), metrics: { correct: isRight } };
  },
});
