/** Conversations, which a judge compares, and how a recorded attempt becomes one. */
import { canonicalJson, hashOf } from '../../../core/text/hashes.ts';
import { inPlayOrder, type AttemptRecord, type CallRecord, type ChatMessage } from '../groups/trajectories.ts';

/** One attempt at a task. */
export interface Conversation {
  /** Its own among those that are judged together; a judge never sees it. */
  readonly id: string;
  readonly messages: readonly ChatMessage[];
  /** Definitions as they were sent to the model. */
  readonly tools?: readonly unknown[];
  /** Further conversations of the same attempt: a sub-agent's, or those before its history was rewritten. */
  readonly additionalHistories?: readonly (readonly ChatMessage[])[];
}

/** Attempts that said the same, word for word: judged once. */
export interface DistinctAttempt {
  readonly sha256: string;
  readonly conversation: Conversation;
  readonly ids: readonly string[];
}

/**
 * The calls of an attempt as conversations: one that extends what was said before grows it, any other begins one of its
 * own. They stand in the order in which they began, so that what all attempts begin with stands first.
 */
export function conversationOf({ attempt, calls }: Pick<AttemptRecord, 'attempt' | 'calls'>): Conversation {
  const histories: ChatMessage[][] = [];
  for (const call of inPlayOrder(calls)) addCall(histories, call);
  const [main = [], ...additionalHistories] = histories;
  const tools = distinctTools(calls.map(({ request }) => request.tools ?? []));
  return { id: String(attempt), messages: main, tools, additionalHistories };
}

function addCall(histories: ChatMessage[][], { request, message }: CallRecord): void {
  const grown = [...request.messages, message];
  const extended = histories.findIndex((history) => isPrefix(history, request.messages));
  histories[extended >= 0 ? extended : histories.length] = grown;
}

function isPrefix(history: readonly ChatMessage[], messages: readonly ChatMessage[]): boolean {
  return history.length <= messages.length && commonLength([history, messages]) === history.length;
}

/** Every definition once, in the order in which they first stood. */
export function distinctTools(lists: readonly (readonly unknown[])[]): unknown[] {
  return [...new Map(lists.flat().map((tool) => [canonicalJson(tool), tool])).values()];
}

/** In the order of their hashes: no place among the attempts of a group is better than another, and every repetition has it. */
export function distinctAttempts(conversations: readonly Conversation[]): DistinctAttempt[] {
  const found = new Map<string, { conversation: Conversation; ids: string[] }>();
  for (const conversation of conversations) {
    const sha256 = hashOf([conversation.messages.map(essence), (conversation.additionalHistories ?? []).map(essences)]);
    const known = found.get(sha256);
    if (known === undefined) found.set(sha256, { conversation, ids: [conversation.id] });
    else known.ids.push(conversation.id);
  }
  const attempts = [...found].map(([sha256, attempt]) => ({ sha256, ...attempt }));
  return attempts.toSorted((left, right) => (left.sha256 < right.sha256 ? -1 : 1));
}

/** How many messages all of them begin with. */
export function commonLength(histories: readonly (readonly ChatMessage[])[]): number {
  const [first = [], ...others] = histories;
  const shared = first.findIndex((message, index) => others.some((other) => !isSame(message, other[index])));
  return shared === -1 ? first.length : shared;
}

/** Texts are compared as they are: each call repeats the history, so that writing them anew takes long. */
function isSame(left: ChatMessage, right: ChatMessage | undefined): boolean {
  if (right === undefined || textOf(left) !== textOf(right)) return false;
  return canonicalJson(withoutText(left)) === canonicalJson(withoutText(right));
}

const textOf = ({ content }: ChatMessage): string | null =>
  typeof content === 'string' ? content : content == null ? '' : null;

const withoutText = (message: ChatMessage): object =>
  essence(textOf(message) === null ? message : { ...message, content: '' });

function essences(messages: readonly ChatMessage[]): object[] {
  return messages.map(essence);
}

/** The messages without empty members, which an agent that hands an answer back may leave out. */
export function essence({ role, content, tool_calls: calls, tool_call_id: answers, name }: ChatMessage): object {
  const hasCalls = Array.isArray(calls) && calls.length > 0;
  return {
    role,
    content: content ?? '',
    ...(hasCalls ? { tool_calls: calls } : {}),
    ...(typeof answers === 'string' ? { tool_call_id: answers } : {}),
    ...(typeof name === 'string' ? { name } : {}),
  };
}
