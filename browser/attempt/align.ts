/** Two conversations beside each other: messages that belong together, and the words in which they differ. */
import { diffArrays, diffWordsWithSpace } from 'diff';
import type { MessageView, TurnView } from '../../views/api/attempt-views.ts';
import { messageText } from '../../views/api/message-text.ts';

export interface Block {
  readonly turn: number;
  readonly role: string;
  readonly text: string;
}

/** Null on the side that has no such message. */
export interface AlignedRow {
  readonly left: Block | null;
  readonly right: Block | null;
  readonly isSame: boolean;
}

export interface WordPart {
  readonly text: string;
  readonly kind: 'same' | 'removed' | 'added';
}

/** Messages in the order of the conversation; calls of tools as one would write them. */
export function blocksOf(turns: readonly TurnView[]): Block[] {
  return turns.flatMap((turn, index) =>
    [...turn.messages, turn.answer].map((message) => ({ turn: index, role: message.role, text: messageText(message) })),
  );
}

/** Characters from which on the same text is the same message, in whatever turn. */
const LONG_ENOUGH = 60;

export function alignBlocks(left: readonly Block[], right: readonly Block[]): AlignedRow[] {
  const changes = diffArrays([...left], [...right], {
    // A short answer such as "7" occurs in many turns: it ties only those of one number.
    comparator: (one, other) =>
      one.role === other.role && one.text === other.text && (one.turn === other.turn || one.text.length >= LONG_ENOUGH),
  });
  const rows: AlignedRow[] = [];
  let [atLeft, atRight] = [0, 0];
  let removed: Block[] = [];
  let added: Block[] = [];
  const flush = (): void => {
    rows.push(...pairUp(removed, added));
    removed = [];
    added = [];
  };
  for (const change of changes) {
    if (change.removed) removed.push(...left.slice(atLeft, (atLeft += change.count)));
    else if (change.added) added.push(...right.slice(atRight, (atRight += change.count)));
    else {
      flush();
      for (let index = 0; index < change.count; index++)
        rows.push({ left: left[atLeft++]!, right: right[atRight++]!, isSame: true });
    }
  }
  flush();
  return rows;
}

/** Messages between two that are the same: those of one role pair up in order. */
function pairUp(removed: readonly Block[], added: readonly Block[]): AlignedRow[] {
  const rows: AlignedRow[] = [];
  let at = 0;
  for (const block of removed) {
    const partner = added.findIndex(({ role }, index) => index >= at && role === block.role);
    if (partner < 0) {
      rows.push({ left: block, right: null, isSame: false });
      continue;
    }
    for (; at < partner; at++) rows.push({ left: null, right: added[at]!, isSame: false });
    rows.push({ left: block, right: added[at++]!, isSame: false });
  }
  for (; at < added.length; at++) rows.push({ left: null, right: added[at]!, isSame: false });
  return rows;
}

/** Texts beyond it are shown as replaced whole: the comparison takes the square of their differences. */
const MOST_EDITS = 4000;

export function diffWords(left: string, right: string): WordPart[] {
  const changes = diffWordsWithSpace(left, right, { maxEditLength: MOST_EDITS, timeout: 300 });
  if (changes === undefined)
    return [
      { text: left, kind: 'removed' },
      { text: right, kind: 'added' },
    ];
  return changes.map(({ value, added, removed }) => ({
    text: value,
    kind: added ? 'added' : removed ? 'removed' : 'same',
  }));
}

/** Number of messages with which every attempt's first prompt begins; 0 for a single attempt. */
export function countShared(attempts: readonly { readonly turns: readonly Pick<TurnView, 'messages'>[] }[]): number {
  const [first, ...others] = attempts.flatMap(({ turns }) => (turns[0] === undefined ? [] : [turns[0].messages]));
  if (first === undefined || others.length === 0) return 0;
  // What was cut off of a long one may differ.
  const isShared = (message: MessageView, at: number): boolean =>
    message.cut === 0 && others.every((messages) => JSON.stringify(messages[at]) === JSON.stringify(message));
  const end = first.findIndex((message, at) => !isShared(message, at));
  return end === -1 ? first.length : end;
}
