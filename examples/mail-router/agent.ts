/** Sorts support mails into queues: one mail, one label. Only the right label earns anything. */
import { defineAgent } from 'temper-rl';
import { heldOutMails, queues, trainingMails, type Mail, type Queue } from './mails.ts';

export default defineAgent<Mail>({
  name: 'mail-router',
  scenarios: trainingMails,
  evalScenarios: heldOutMails,
  spreadBy: 'queue',

  async rollout({ scenario, openai, model }) {
    const completion = await openai.chat.completions.create({ model, messages: [...ask(scenario)], max_tokens: 8 });
    return grade(completion.choices[0]?.message.content ?? '', scenario.queue);
  },
});

const INSTRUCTIONS = `Sort the mail into one of five queues:
billing: payments, invoices, prices
shipping: parcels and their delivery
returns: sending back, exchange, refund
account: login, password, profile
technical: faults of the app or the website
Answer with the name of the queue.`;

/** The prompt of an attempt, and of the chats for the warm start. */
export function ask({ text }: Mail) {
  return [
    { role: 'system', content: INSTRUCTIONS },
    { role: 'user', content: text },
  ] as const;
}

export function grade(answer: string, queue: Queue) {
  const chosen = answer.trim();
  const correct = chosen === queue;
  return { reward: correct ? 1 : 0, metrics: { correct, known: queues.some((each) => each === chosen) } };
}
