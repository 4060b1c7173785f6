/** Examples from the best attempts by reward. */
import { isAnswer, type ChatExample } from '../../core/chat-examples.ts';
import { canonicalJson } from '../../core/hashes.ts';

type Message = Record<string, unknown>;

interface RecordedCall {
  readonly messages: readonly object[];
  readonly tools: readonly object[] | null;
  readonly answer: object;
}

export interface RatedAttempt {
  readonly reward: number;
  /** Origin of the attempt, such as step, group and attempt. */
  readonly place: Readonly<Record<string, number>>;
  /** Calls in order. */
  readonly calls: readonly RecordedCall[];
}

export interface Distilled {
  readonly attempts: readonly RatedAttempt[];
  readonly examples: readonly ChatExample[];
  /** Number of conversations identical to those of another chosen attempt. */
  readonly repeated: number;
  /** Number of conversations with an answer that has neither text nor calls. */
  readonly empty: number;
}

/** Chat example in the recorded form; an empty `tools` means that none were offered. */
export function recordedCall(
  { messages, tools = [] }: { readonly messages: readonly object[]; readonly tools?: readonly unknown[] | undefined },
  answer: object,
): RecordedCall {
  return { messages, tools: tools.length === 0 ? null : (tools as readonly object[]), answer };
}

/** Best `share` of the attempts; 1 takes all. Ties go to those played first. */
export function distill(played: readonly RatedAttempt[], share: number): Distilled {
  const ranked = played.toSorted((a, b) => b.reward - a.reward);
  const attempts = ranked.slice(0, Math.ceil(share * ranked.length));
  const conversations = attempts.flatMap(({ calls, ...rated }) =>
    conversationsOf(calls).map((conversation) => ({ ...conversation, ...rated })),
  );
  const answered = conversations.filter(({ messages }) =>
    messages.every((message) => message['role'] !== 'assistant' || isAnswer(message)),
  );
  const seen = new Set<string>();
  const fresh = answered.filter(({ messages, tools }) => {
    const content = canonicalJson([messages, tools]);
    return !seen.has(content) && seen.add(content);
  });
  const examples = fresh.map(({ messages, tools, place, reward }, index) => ({
    id: `line ${index + 1}`,
    messages,
    ...(tools === null ? {} : { tools: tools as Message[] }),
    metadata: { ...place, reward },
  }));
  const [repeated, empty] = [answered.length - fresh.length, conversations.length - answered.length];
  return { attempts, examples, repeated, empty };
}

interface Conversation {
  messages: Message[];
  tools: readonly object[] | null;
}

/** Final conversations: a call that continues an earlier one replaces it. */
function conversationsOf(calls: readonly RecordedCall[]): Conversation[] {
  return calls.reduce<Conversation[]>((before, { messages, tools, answer }) => {
    const asked = messages.map(withoutNulls);
    const kept = before.filter((earlier) => !goesOn(asked, earlier.messages));
    return [...kept, { messages: [...asked, withoutNulls(answer)], tools }];
  }, []);
}

function goesOn(messages: readonly Message[], earlier: readonly Message[]): boolean {
  return canonicalJson(messages.slice(0, earlier.length)) === canonicalJson(earlier);
}

/** Drops empty members, which some SDKs echo and others omit. */
function withoutNulls(message: object): Message {
  return Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null && value !== undefined));
}
