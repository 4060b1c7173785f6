/**
 * Finds of each conversation that was sent to a model which earlier one it grew from: the last turn, an older one (an
 * agent returns from a sub-agent, or tries another way), or one whose history was cut or rewritten.
 */
import { canonicalJson } from '../../core/text/hashes.ts';
import { essence } from '../../store/records/judging/conversation.ts';
import type { CallRecord, ChatMessage } from '../../store/records/groups/trajectories.ts';

export interface TurnOrigin {
  /** Number of leading messages that an earlier turn showed. */
  readonly shared: number;
  /** Index of that turn; null if it is the one before, or none. */
  readonly forkOf: number | null;
  readonly fresh: boolean;
  /** Indexes of its messages that no earlier turn of its history showed. */
  readonly shown: readonly number[];
}

/** Conversations so far as a tree: a path from the root is a history, and each node knows who went there last. */
interface Node {
  readonly next: Map<string, Node>;
  turn: number;
}

const OPENING_ROLES = new Set(['system', 'developer']);

/** In the order of the calls: each of an attempt's, as they were made. */
export function findOrigins(calls: readonly Pick<CallRecord, 'request' | 'message'>[]): TurnOrigin[] {
  const root: Node = { next: new Map(), turn: -1 };
  const keys = calls.map(({ request, message }) => [...request.messages, message].map(keyOf));
  return calls.map((call, turn) => {
    const history = keys[turn]!;
    const origin = findOrigin(root, call, history.slice(0, -1), keys.slice(0, turn));
    addHistory(root, history, turn);
    return origin;
  });
}

function findOrigin(
  root: Node,
  { request }: Pick<CallRecord, 'request'>,
  messages: readonly string[],
  earlier: readonly (readonly string[])[],
): TurnOrigin {
  const all = messages.map((_, index) => index);
  if (earlier.length === 0) return { shared: 0, forkOf: null, fresh: false, shown: all };
  const { shared, turn } = followPath(root, messages);
  const isOpening = request.messages.slice(0, shared).every(({ role }) => OPENING_ROLES.has(role));
  if (!isOpening) {
    const forkOf = turn === earlier.length - 1 && earlier.at(-1)!.length === shared ? null : turn;
    return { shared, forkOf, fresh: false, shown: all.slice(shared) };
  }
  const rewritten = findRewritten(messages, earlier);
  if (rewritten === null) return { shared, forkOf: null, fresh: true, shown: all.slice(shared) };
  const known = new Set(earlier[rewritten]);
  return { shared, forkOf: rewritten, fresh: true, shown: all.filter((index) => !known.has(messages[index]!)) };
}

function followPath(root: Node, messages: readonly string[]): { shared: number; turn: number } {
  let node = root;
  for (const [index, message] of messages.entries()) {
    const next = node.next.get(message);
    if (next === undefined) return { shared: index, turn: node.turn };
    node = next;
  }
  return { shared: messages.length, turn: node.turn };
}

function addHistory(root: Node, history: readonly string[], turn: number): void {
  let node = root;
  for (const message of history) {
    const next: Node = node.next.get(message) ?? { next: new Map(), turn };
    next.turn = turn;
    node.next.set(message, next);
    node = next;
  }
}

/** The last turn whose answer stands in the messages, although they begin differently: its history was cut or summed up. */
function findRewritten(messages: readonly string[], earlier: readonly (readonly string[])[]): number | null {
  const there = new Set(messages);
  const found = earlier.findLastIndex((history) => there.has(history.at(-1)!));
  return found === -1 ? null : found;
}

function keyOf(message: ChatMessage): string {
  return canonicalJson(essence(message));
}
