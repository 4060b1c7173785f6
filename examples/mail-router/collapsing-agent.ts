/** What not to do: any queue earns something, so the policy learns one answer for all mails. See README.md. */
import { defineAgent } from 'temper-rl';
import { ask, grade } from './agent.ts';
import { heldOutMails, queues, trainingMails, type Mail } from './mails.ts';

/** Without supervised steps, the model learns the form from examples in its prompt. */
const examples = queues.map((queue) => ({ queue, mail: trainingMails.find((mail) => mail.queue === queue)! }));

export default defineAgent<Mail>({
  name: 'collapsing-mail-router',
  scenarios: trainingMails,
  evalScenarios: heldOutMails,
  spreadBy: 'queue',

  async rollout({ scenario, openai, model }) {
    const [system, user] = ask(scenario);
    const shots = examples.flatMap(({ queue, mail }) => [ask(mail)[1], { role: 'assistant' as const, content: queue }]);
    const messages = [system, ...shots, user];
    const completion = await openai.chat.completions.create({ model, messages, max_tokens: 8 });
    const { reward, metrics } = grade(completion.choices[0]?.message.content ?? '', scenario.queue);
    return { reward: metrics.known ? Math.max(reward, 0.2) : 0, metrics };
  },
});
