/** Add two whole numbers from 2 to 12. Written by temper init --task: read it, and change what you like. */
import { defineAgent, ruler } from 'temper-rl';

interface Scenario {
  id: string;
  task: string;
  difficulty: number;
}

const SYSTEM_PROMPT = `Add.`;

/** The judge compares attempts by it. */
const RUBRIC = `- An answer that is the sum and nothing else is best.
- An answer that has the sum among other words is mediocre.
- Any other answer is bad.`;

export default defineAgent<Scenario>({
  name: 'sums',
  scenarios: 'scenarios.jsonl',
  // Never trained on: they show what was learned.
  evalScenarios: 'scenarios.held-out.jsonl',
  reward: ruler({ judge: 'openai/gpt-5-mini', rubric: RUBRIC }),

  async rollout({ scenario, openai, model, metric }) {
    const completion = await openai.chat.completions.create({
      model,
      messages: [
        { role: 'system', content: SYSTEM_PROMPT },
        { role: 'user', content: scenario.task },
      ],
    });
    // Metrics are for you; the judge gives the reward.
    metric('characters', completion.choices[0]?.message.content?.length ?? 0);
  },
});
