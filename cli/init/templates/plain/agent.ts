/** Learns the multiplication table: a question, an answer, and a reward for the exact product. */
import { defineAgent } from 'temper-rl';

const numbers = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const table = numbers.flatMap((left) => numbers.map((right) => ({ id: `${left}x${right}`, left, right })));
const isHeldOut = ({ left, right }: (typeof table)[number]) => (left + right) % 4 === 3;

export default defineAgent({
  name: 'times-table',
  scenarios: table.filter((problem) => !isHeldOut(problem)),
  // Never trained on. Each problem is asked three times, because the model samples its answers.
  evalScenarios: [1, 2, 3].flatMap((round) =>
    table.filter(isHeldOut).map((problem) => ({ ...problem, id: `${problem.id}-${round}` })),
  ),

  // `openai` is the official client, connected to the model that is trained.
  async rollout({ scenario: { left, right }, openai, model }) {
    const completion = await openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: `${left}*${right}=` }],
      max_tokens: 4,
    });
    const correct = completion.choices[0]?.message.content === String(left * right);
    return { reward: correct ? 1 : 0, metrics: { correct } };
  },
});
