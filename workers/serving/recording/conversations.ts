/**
 * Which conversation a request continues: the one that its client names, or else the one whose messages and answers it
 * begins with. A beginning that several conversations share tells nothing: then a new one begins.
 */
import { hash } from 'node:crypto';

import { canonicalJson } from '../../../core/text/hashes.ts';
import { firstAnswerOf } from '../../../store/records/production/recording-ids.ts';
import type { ChatMessage } from '../../../store/records/groups/trajectories.ts';

export interface FoundConversation {
  /** Null until its first answer is recorded, unless its client names it. */
  name: string | null;
  readonly isRecorded: boolean;
}

/** Ends of conversations that are remembered: about 200 bytes each. */
const MOST_ENDS = 50_000;
const SHARE_RANGE = 2 ** 32;

export class Conversations {
  readonly #share: number;
  readonly #random: () => number;
  /** Conversations by the hash of all messages up to an answer; null: several end so. */
  readonly #byEnd = new Map<string, FoundConversation | null>();

  /** `share`: how many of the conversations are recorded, from 0 to 1. */
  constructor(share: number, random: () => number = Math.random) {
    this.#share = share;
    this.#random = random;
  }

  find(named: string | null, messages: readonly ChatMessage[]): FoundConversation {
    if (named !== null) return { name: named, isRecorded: isOwn(named) || positionOf(named) < this.#share };
    const ends = [...endsOf(messages)].filter((_, index) => messages[index]!.role === 'assistant');
    const known = ends.findLast((end) => this.#byEnd.has(end));
    const found = known === undefined ? null : this.#byEnd.get(known);
    return found ?? { name: null, isRecorded: this.#random() < this.#share };
  }

  /** After an answer: the next request may begin with it. */
  keep(conversation: FoundConversation, messages: readonly ChatMessage[], answer: ChatMessage): void {
    const end = [...endsOf([...messages, answer])].at(-1)!;
    const known = this.#byEnd.get(end);
    const isShared = known !== undefined && known !== conversation;
    this.#byEnd.delete(end);
    this.#byEnd.set(end, isShared ? null : conversation);
    for (const oldest of this.#byEnd.keys()) {
      if (this.#byEnd.size <= MOST_ENDS) break;
      this.#byEnd.delete(oldest);
    }
  }
}

/** Temper names conversations that it records. */
const isOwn = (name: string): boolean => firstAnswerOf(name) !== null;

/** The same for each server that records. */
function positionOf(name: string): number {
  return Number.parseInt(hash('sha256', name).slice(0, 8), 16) / SHARE_RANGE;
}

/** After each message, the hash of all so far. */
function* endsOf(messages: readonly ChatMessage[]): Generator<string> {
  let end = '';
  for (const message of messages) {
    end = hash('sha256', end + canonicalJson(spoken(message)));
    yield end;
  }
}

/** Members that clients send back as they got them. */
function spoken({ role, content, tool_calls: calls, tool_call_id: answered }: ChatMessage): object {
  return { role, content: content ?? '', calls: calls ?? [], answered };
}
