/** Learns the multiplication table: one question, one answer, and a reward for the exact product alone. */
import { defineAgent } from 'temper-rl';
import { grade, examProblems, question, trainingProblems, type Problem } from './problems.ts';

export default defineAgent<Problem>({
  name: 'multiplication',
  scenarios: trainingProblems,
  evalScenarios: examProblems,

  async rollout({ scenario, openai, model }) {
    const completion = await openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: question(scenario) }],
      max_tokens: 4, // three digits, and the end of the turn
    });
    const reward = grade(completion.choices[0]?.message.content ?? null, scenario);
    return { reward, metrics: { correct: reward === 1 } };
  },
});
