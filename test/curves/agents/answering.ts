/** Agents of multiplication whose answer is judged in a way of their own. */
import { defineAgent } from '../../../sdk/index.ts';
import { examProblems, question, trainingProblems, type Problem } from '../../../examples/multiplication/problems.ts';

interface Judged {
  reward: number;
  metrics: Record<string, boolean>;
}

export function answering(name: string, judge: (answer: string, problem: Problem) => Judged) {
  return defineAgent<Problem>({
    name,
    scenarios: trainingProblems,
    evalScenarios: examProblems,

    async rollout({ scenario, openai, model }) {
      const messages = [{ role: 'user' as const, content: question(scenario) }];
      const { choices } = await openai.chat.completions.create({ model, messages, max_tokens: 4 });
      return judge(choices[0]?.message.content ?? '', scenario);
    },
  });
}
