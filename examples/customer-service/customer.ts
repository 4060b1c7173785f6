/** Customers: one that a model plays, by the role of that name, and one that says its lines in their order. */
import type { RoleContext } from 'temper-rl';
import type { Task } from './task.ts';

export interface Customer {
  /** The customer's next words to the agent; null hangs up. The first call has nothing to answer. */
  say(answered: string | null): Promise<string | null>;
}

const HANG_UP = '[hang up]';
/** Thoughts of a reasoning model included. */
const MAX_TOKENS = 4000;

const RULES = [
  'You play a customer who calls a service desk. Stay in this role, and write only what the customer says: one or two sentences.',
  'Tell things one after another, as you are asked for them, and none that you do not know. Agree when you are offered what you want.',
  `When the desk has done what you want, or has refused it for good, write ${HANG_UP} and nothing else.`,
].join('\n');

/** The desk's words are the user's messages, and the customer's own those of the assistant. */
export function modelledCustomer({ openai, model }: RoleContext, { wants }: Task): Customer {
  const messages: { role: 'system' | 'user' | 'assistant'; content: string }[] = [
    { role: 'system', content: `${RULES}\n\n${wants}` },
  ];
  return {
    async say(answered) {
      messages.push({ role: 'user', content: answered ?? 'Hello, how can I help you?' });
      const completion = await openai.chat.completions.create({ model, messages, max_completion_tokens: MAX_TOKENS });
      const content = completion.choices[0]?.message.content?.trim() ?? '';
      messages.push({ role: 'assistant', content });
      return content === '' || content.includes(HANG_UP) ? null : content;
    },
  };
}

export function scriptedCustomer({ says }: Task): Customer {
  const left = [...says];
  return { say: () => Promise.resolve(left.shift() ?? null) };
}
