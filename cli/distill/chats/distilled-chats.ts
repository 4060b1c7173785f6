/** Examples from the best attempts by reward. */
import { isAnswer, type ChatExample } from '../../../core/text/chat-examples.ts';
import type { TrainedRoles } from '../../../core/contract/contract.ts';
import { canonicalJson } from '../../../core/text/hashes.ts';

type Message = Record<string, unknown>;

interface RecordedCall {
  readonly messages: readonly object[];
  readonly tools: readonly object[] | null;
  readonly answer: object;
}

/** An attempt, or the part of it that one role played. */
export interface RatedAttempt {
  /** With roles, that of the role. */
  readonly reward: number;
  /** Origin of the attempt, such as step, group, attempt and role. */
  readonly place: Readonly<Record<string, number | string>>;
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

interface Rewarded<Call> {
  readonly reward: number;
  readonly roleRewards?: Readonly<Record<string, number>> | null | undefined;
  readonly calls: readonly Call[];
}

/**
 * The attempt, or, with roles, what each of those that train `policy` played in it: what an opponent did is no example,
 * and neither is what another policy did. What made no call is left out.
 */
export function rolePartsOf<Call extends { readonly role?: string | undefined }>(
  attempt: Rewarded<Call>,
  roles: TrainedRoles | undefined,
  policy: string,
): { reward: number; calls: readonly Call[]; role?: string }[] {
  const parts =
    roles === undefined
      ? [attempt]
      : Object.entries(roles).flatMap(([role, trained]) => {
          const reward = attempt.roleRewards?.[role];
          if (trained !== policy || reward === undefined) return [];
          return [{ reward, calls: attempt.calls.filter((call) => call.role === role), role }];
        });
  return parts.filter(({ calls }) => calls.length > 0);
}

/** Best `share` of the attempts, of each role by itself; 1 takes all. Ties go to those played first. */
export function distill(played: readonly RatedAttempt[], share: number): Distilled {
  const roles = [...new Set(played.map(({ place }) => place['role']))];
  const best = roles.flatMap((role) =>
    bestOf(
      played.filter(({ place }) => place['role'] === role),
      share,
    ),
  );
  const attempts = best.toSorted((a, b) => b.reward - a.reward);
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

/** Rewards of two roles say nothing of each other: one may win what the other loses. */
function bestOf(played: readonly RatedAttempt[], share: number): RatedAttempt[] {
  const ranked = played.toSorted((a, b) => b.reward - a.reward);
  return ranked.slice(0, Math.ceil(share * ranked.length));
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

/** JSON line of an example; its position in the file is its id. */
export function toLine({ messages, tools, metadata }: ChatExample): string {
  return `${JSON.stringify({ messages, ...(tools === undefined ? {} : { tools }), metadata })}\n`;
}
