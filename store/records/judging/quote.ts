/**
 * Conversations as a judge reads them: one line of JSON for each message. Whatever stands in a text, its line has no
 * line break, no angle bracket and no invisible character: no text can end the block that it stands in, or open another.
 */
import type { ChatMessage } from '../groups/trajectories.ts';
import { essence } from './conversation.ts';

/** `<`, `>` and `&` of tags; control and format characters (directions, zero widths, tags); line and paragraph separators. */
const UNSAFE = /[<>&]|\p{Cc}|\p{Cf}|\p{Co}|\p{Zl}|\p{Zp}/gu;

/** JSON in which everything that could be taken for a delimiter is an escape. */
function quote(value: unknown): string {
  return (JSON.stringify(value) ?? 'null').replace(UNSAFE, escapeUnits);
}

function escapeUnits(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** More messages than this are cut in their middle; however long a conversation is, its end is shown. */
const MAX_MESSAGES = 200;

/**
 * The truncation rule: at most `MAX_MESSAGES` messages, half from the beginning and half from the end. Then, if all
 * texts together are longer than `maxChars` as quoted, the longest are cut in their middle, all to one length, so that
 * they fit: short texts stay whole, and no message disappears behind a long one.
 */
export function quoteMessages(messages: readonly ChatMessage[], maxChars: number): string[] {
  const half = MAX_MESSAGES / 2;
  const isLong = messages.length > MAX_MESSAGES;
  const kept = isLong ? [...messages.slice(0, half), ...messages.slice(-half)] : messages;
  const lines = kept.map(textsOf);
  const limit = planLimit(
    lines.flatMap((texts) => Object.values(texts).map(quotedLength)),
    maxChars,
  );
  const quoted = lines.map((texts) =>
    quote(Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, cut(text, limit)]))),
  );
  if (isLong) quoted.splice(half, 0, quote({ leftOut: `${messages.length - MAX_MESSAGES} messages` }));
  return quoted;
}

/** Tools are the operator's, and yet they are quoted and bounded as everything else that came over the wire. */
export function quoteTools(tools: readonly unknown[], maxChars: number): string[] {
  const texts = tools.map((tool) => JSON.stringify(tool) ?? 'null');
  const limit = planLimit(texts.map(quotedLength), maxChars);
  return texts.map((text, index) => (quotedLength(text) <= limit ? quote(tools[index]) : quote(cut(text, limit))));
}

/** The parts of a message by their names, each as text. */
function textsOf(message: ChatMessage): Record<string, string> {
  const parts = Object.entries(essence(message));
  return Object.fromEntries(
    parts.map(([name, part]) => [name, typeof part === 'string' ? part : (JSON.stringify(part) ?? '')]),
  );
}

/** The length to which the longest are cut, so that all together are no longer than `total`. */
function planLimit(lengths: readonly number[], total: number): number {
  const ascending = lengths.toSorted((left, right) => left - right);
  let room = total;
  for (const [index, length] of ascending.entries()) {
    const share = Math.floor(room / (ascending.length - index));
    if (length > share) return share;
    room -= length;
  }
  return Infinity;
}

type Cut = string | { start: string; leftOut: string; end: string };

function cut(text: string, limit: number): Cut {
  if (quotedLength(text) <= limit) return text;
  const characters = Array.from(text);
  const start = take(characters, limit / 2);
  const end = take(characters.slice(start.length).toReversed(), limit / 2).toReversed();
  const leftOut = characters.length - start.length - end.length;
  return { start: start.join(''), leftOut: `${leftOut} characters`, end: end.join('') };
}

function take(characters: readonly string[], limit: number): string[] {
  let room = limit;
  const end = characters.findIndex((character) => (room -= quotedLength(character)) < 0);
  return characters.slice(0, end === -1 ? characters.length : end);
}

/** Without the quotation marks. */
function quotedLength(text: string): number {
  return quote(text).length - 2;
}

/** Quoted lines between delimiters whose mark nobody who speaks in them can know. */
export function block(name: string, mark: string, lines: readonly string[]): string[] {
  return [`<${name} ${mark}>`, ...lines, `</${name} ${mark}>`];
}
