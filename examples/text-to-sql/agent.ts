/** Learns to answer questions about a shop's database: a query, and another one where SQLite refuses it. */
import { defineAgent } from 'temper-rl';
import { grade } from './grade.ts';
import { openShop, SCHEMA } from './shop.ts';
import { examQuestions, trainingQuestions, type Scenario } from './shop-questions.ts';

const DATABASES = [1, 2, 3, 4, 5].map(openShop);
const MAX_TURNS = 3;
/** A query that runs at once is better than one that has to be corrected. */
const EACH_CORRECTION = 0.1;

const TASK = `You answer questions about this SQLite database with one SELECT query.\n\n${SCHEMA}\n
Days are written as 2024-03-09. Select what is asked for and no other column. Answer with the query alone.`;

export default defineAgent<Scenario>({
  name: 'text-to-sql',
  scenarios: trainingQuestions,
  evalScenarios: examQuestions,

  async rollout({ scenario, openai, model }) {
    const messages: { role: 'system' | 'user' | 'assistant'; content: string }[] = [
      { role: 'system', content: TASK },
      { role: 'user', content: scenario.text },
    ];
    for (let turn = 1; ; turn++) {
      const completion = await openai.chat.completions.create({ model, messages, max_tokens: 512 });
      const content = completion.choices[0]?.message.content ?? '';
      const { reward, complaint, metrics } = grade(readQuery(content), scenario, DATABASES);
      if (complaint === null || turn === MAX_TURNS) {
        const corrections = metrics.correct ? EACH_CORRECTION * (turn - 1) : 0;
        return { reward: reward - corrections, metrics: { ...metrics, turns: turn } };
      }
      messages.push({ role: 'assistant', content }, { role: 'user', content: `The query does not run: ${complaint}.` });
    }
  },
});

/** The text of the last fence, or all of it. */
function readQuery(text: string): string {
  return [...text.matchAll(/```(?:sql)?\n(.*?)```/gs)].at(-1)?.[1] ?? text;
}
