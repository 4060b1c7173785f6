/** Learns to answer a question with one SQL query, after a warm start on the chats of write-chats.ts. */
import { defineAgent } from 'temper-rl';
import { grade } from './grade.ts';
import { examQuestions, openGuests, trainingQuestions, type Scenario } from './guests.ts';

const DATABASES = [1, 2, 3].map(openGuests);

export default defineAgent<Scenario>({
  name: 'text-to-sql',
  scenarios: trainingQuestions,
  evalScenarios: examQuestions,

  async rollout({ scenario, openai, model }) {
    const completion = await openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: scenario.text }],
      max_tokens: 64,
    });
    const { reward, metrics } = grade(completion.choices[0]?.message.content ?? '', scenario, DATABASES);
    return { reward, metrics };
  },
});
