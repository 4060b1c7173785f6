/** Temporal clue with three guests, three rooms, two hours and one question, in so few bytes that the pocket model can try. */
import { defineAgent } from 'temper-rl';
import { examPuzzles, trainingPuzzles, type Scenario } from './scenarios.ts';

export default defineAgent<Scenario>({
  name: 'temporal-clue',
  scenarios: () => trainingPuzzles(2000),
  evalScenarios: () => examPuzzles(200),

  async rollout({ scenario, openai, model }) {
    const completion = await openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: scenario.text }],
      max_tokens: 2, // a guest's number, and the end of the turn
    });
    const correct = completion.choices[0]?.message.content === String(scenario.answer + 1);
    return { reward: Number(correct), metrics: { correct } };
  },
});
