/** The words of an attempt that search looks through: each message once, what the agent logged, and why it failed. */
import type { AttemptRecord, ChatMessage } from '../../store/records/groups/trajectories.ts';
import { messageText } from '../api/message-text.ts';
import { viewMessage } from '../attempts/messages.ts';

/** A search looks through no more of an attempt. */
const MAX_CHARACTERS = 4_000_000;

export interface SearchText {
  readonly text: Buffer;
  /** In lower case, each character at the same bytes. */
  readonly lower: Buffer;
}

export function searchText(record: AttemptRecord): SearchText {
  const seen = new Set<string>();
  let length = 0;
  const add = (text: string): void => {
    if (text === '' || seen.has(text) || length > MAX_CHARACTERS) return;
    seen.add(text);
    length += text.length + 1;
  };
  for (const { request, message } of record.calls)
    for (const each of [...request.messages, message]) add(wordsOf(each));
  for (const { request, choices } of record.hostedCalls ?? [])
    for (const each of [...request.messages, ...choices.map(({ message }) => message)]) add(wordsOf(each));
  for (const line of record.logs) add(line);
  if (record.failure !== null) add(`${record.failure.type}: ${record.failure.message}`);
  const text = [...seen].join('\n').slice(0, MAX_CHARACTERS).toWellFormed();
  return { text: Buffer.from(text), lower: Buffer.from(lowerInPlace(text)) };
}

function wordsOf(message: ChatMessage): string {
  const view = viewMessage(message);
  return [view.thoughts ?? '', messageText(view)].filter((part) => part !== '').join('\n');
}

/** Lower case without moving a byte: the few characters that would have another length stay as they are. */
export function lowerInPlace(text: string): string {
  const lower = text.toLowerCase();
  if (lower.length === text.length && Buffer.byteLength(lower) === Buffer.byteLength(text)) return lower;
  return Array.from(text, lowerCharacter).join('');
}

function lowerCharacter(character: string): string {
  const lower = character.toLowerCase();
  return Buffer.byteLength(lower) === Buffer.byteLength(character) ? lower : character;
}
