/** One question, looked up and answered: what both editions have in common. */
import { toolLoop, type RolloutContext, type Tool } from 'temper-rl';
import type OpenAI from 'openai';
import { grade, type Answer, type Edition, type Trail } from './grade.ts';
import type { Question } from './mail.ts';

export interface Research {
  readonly edition: Edition;
  readonly messages: OpenAI.Chat.ChatCompletionMessageParam[];
  readonly question: Question;
  /** They leave a trail of what was found and read. */
  readonly tools: (trail: Trail) => Tool[];
  readonly parse: (text: string) => Answer | null;
}

export async function research(context: RolloutContext, { edition, messages, question, tools, parse }: Research) {
  const trail: Trail = { found: new Set(), read: new Set() };
  const { maxTurns, maxTokensPerTurn } = edition;
  const played = await toolLoop(context, { messages, tools: tools(trail), maxTurns, maxTokensPerTurn });
  // A last message alone is an answer: what stands in a mail is never taken for one.
  const answer = played.answer === null ? null : parse(played.answer);
  return grade({ answer, trail, turns: played.turns }, question, edition);
}
