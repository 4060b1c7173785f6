/** One ticket, one reply. What is returned are metrics for the curve: no reviewer sees them, and nothing is trained with them. */
import type { ModelClient } from 'temper-rl';
import { scoreReply } from './taste.ts';
import { readReply, renderTicket, type Scenario } from './tickets.ts';

/** A key is one token; what is longer ends all the same, and is no reply. */
const MAX_TOKENS = 4;

export async function playTicket(scenario: Scenario, { openai, model }: Pick<ModelClient, 'openai' | 'model'>) {
  const messages = [{ role: 'user' as const, content: renderTicket(scenario) }];
  const completion = await openai.chat.completions.create({ model, messages, max_tokens: MAX_TOKENS });
  const reply = readReply(completion.choices[0]?.message.content ?? '');
  const liked = scoreReply(scenario, reply);
  return { metrics: { best: liked === 1, liked, legal: reply !== null } };
}
