/** Temporal clue with three guests, three rooms, two hours and one question, in so few bytes that the pocket model can try. */
import { defineAgent } from 'temper-rl';
import { examPuzzles, trainingPuzzles, type SmallScenario } from './small-puzzles.ts';
import { gradeSmall } from './text.ts';

export default defineAgent<SmallScenario>({
  name: 'temporal-clue-small',
  scenarios: () => trainingPuzzles(2000),
  evalScenarios: () => examPuzzles(200),

  async rollout({ scenario, openai, model }) {
    const completion = await openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: scenario.text }],
      max_tokens: 2, // a guest's number, and the end of the turn
    });
    const reward = gradeSmall(completion.choices[0]?.message.content ?? null, scenario.answer);
    return { reward, metrics: { correct: reward === 1 } };
  },
});
