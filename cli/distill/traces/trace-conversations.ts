/** Spans of many traces as attempts: the calls of each conversation in order, with its score, and what was left out. */
import { mean } from '../../../core/numbers/statistics.ts';
import type { ReadSpan } from '../../../outbound/trace/otlp/decode.ts';
import type { ChatMessage } from '../../../store/records/groups/trajectories.ts';
import { recordedCall, type RatedAttempt } from '../chats/distilled-chats.ts';
import { Unreadable } from './chat-messages.ts';
import { readCall, type TracedCall } from './span-calls.ts';

export interface TracedConversation {
  /** Id of the conversation, or of its only trace. */
  readonly id: string;
  readonly calls: readonly TracedCall[];
  /** Mean of its scores of the wanted name; null: it has none. */
  readonly score: number | null;
}

export interface TracedConversations {
  readonly conversations: readonly TracedConversation[];
  /** Calls that are no examples, by reason. */
  readonly leftOut: ReadonlyMap<string, number>;
  /** Number of spans of other operations: agents, tools, databases. */
  readonly otherSpans: number;
}

/** Scores by trace id, span id or session id; those in the spans' own events count, too. */
export type Scores = ReadonlyMap<string, readonly number[]>;

const EVALUATION = 'gen_ai.evaluation.result';

/** A conversation whose turns are traces of their own has an id that they share. */
export function readTraced(
  spans: readonly ReadSpan[],
  scoreName: string,
  given: Scores = new Map(),
): TracedConversations {
  const found = new Map<string, { calls: { start: bigint; call: TracedCall }[]; scores: number[] }>();
  const leftOut = new Map<string, number>();
  const scored = new Set<string>();
  const conversationOf = conversationNames(spans);
  let otherSpans = 0;
  for (const span of spans) {
    const id = conversationOf(span);
    const conversation = found.get(id) ?? { calls: [], scores: [] };
    found.set(id, conversation);
    conversation.scores.push(...eventScores(span, scoreName));
    for (const key of [span.traceId, span.spanId, id].filter((each) => !scored.has(each))) {
      conversation.scores.push(...(given.get(key) ?? []));
      scored.add(key);
    }
    try {
      const call = readCall(span);
      if (call === null) otherSpans += 1;
      else conversation.calls.push({ start: span.start, call });
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      leftOut.set(error.message, (leftOut.get(error.message) ?? 0) + 1);
    }
  }
  const conversations = [...found].flatMap(([id, { calls, scores }]) => {
    if (calls.length === 0) return [];
    const inOrder = calls.toSorted((a, b) => (a.start < b.start ? -1 : Number(a.start > b.start)));
    return [{ id, calls: inOrder.map(({ call }) => call), score: mean(scores) }];
  });
  return { conversations, leftOut, otherSpans };
}

const CONVERSATION_IDS = ['gen_ai.conversation.id', 'langfuse.session.id', 'session.id'];

/** The trace's, where one of its spans has one: inner spans often have none. */
function conversationNames(spans: readonly ReadSpan[]): (span: ReadSpan) => string {
  const names = new Map<string, string>();
  for (const attribute of CONVERSATION_IDS.toReversed()) {
    for (const { traceId, attributes } of spans) {
      const id = attributes[attribute];
      if (typeof id === 'string' && id !== '') names.set(traceId, id);
    }
  }
  return ({ traceId }) => names.get(traceId) ?? traceId;
}

function eventScores({ events }: ReadSpan, scoreName: string): number[] {
  return events.flatMap(({ name, attributes }) => {
    const score = attributes['gen_ai.evaluation.score.value'];
    const isWanted = name === EVALUATION && attributes['gen_ai.evaluation.name'] === scoreName;
    return isWanted && typeof score === 'number' ? [score] : [];
  });
}

/** Unscored ones are worth 0: they are taken together, or not at all. */
export function toAttempt({ id, calls, score }: TracedConversation): RatedAttempt {
  return {
    reward: score ?? 0,
    place: { conversation: id },
    calls: calls.flatMap(({ messages, tools, answers }) =>
      answers.map((answer) => recordedCall({ messages, tools: tools ?? [] }, answer)),
    ),
  };
}

export interface TracedScenario {
  readonly id: string;
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly object[];
}

/** How conversations began: all before the first answer. Equal beginnings are one scenario. */
export function toScenarios(conversations: readonly TracedConversation[]): TracedScenario[] {
  const seen = new Set<string>();
  return conversations.flatMap(({ id, calls }) => {
    const [{ messages, tools }] = calls as [TracedCall];
    const answered = messages.findIndex(({ role }) => role === 'assistant');
    const opening = answered < 0 ? messages : messages.slice(0, answered);
    const content = JSON.stringify([opening, tools]);
    if (opening.length === 0 || seen.has(content)) return [];
    seen.add(content);
    return [{ id, messages: opening, ...(tools !== null && { tools }) }];
  });
}
