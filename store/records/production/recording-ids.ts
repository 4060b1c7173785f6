/**
 * Ids of recorded answers and conversations. An answer's id begins with the chunk that holds it, so that it is found
 * after a restart and on another host, and ends at random, so that nobody guesses another user's.
 */
import { randomBytes } from 'node:crypto';

import { sha256Hex } from '../../../core/text/hashes.ts';

/** Milliseconds in 11 hexadecimal digits last until the year 2527. */
const TIME_DIGITS = 11;
const WRITER_DIGITS = 5;
const CHUNK_DIGITS = TIME_DIGITS + WRITER_DIGITS;
const CHUNK = new RegExp(`^[0-9a-f]{${CHUNK_DIGITS}}$`);
const RANDOM_BYTES = 8;
/** `chatcmpl-ID`, `resp_ID`, `msg_ID`, and items of a response: `fc_ID-0`. */
const ANSWER = /^(?:[a-z]+[-_])?([0-9a-f]{32})(?:-\d+)?$/;
const OWN_CONVERSATION = /^conv_([0-9a-f]{32})$/;
const NAME_DIGITS = 32;

export const isChunk = (name: string): boolean => CHUNK.test(name);

export function newChunk(now: number): string {
  const writer = randomBytes(WRITER_DIGITS).toString('hex').slice(0, WRITER_DIGITS);
  return now.toString(16).padStart(TIME_DIGITS, '0') + writer;
}

export const startOfChunk = (chunk: string): number => Number.parseInt(chunk.slice(0, TIME_DIGITS), 16);

export const newAnswerId = (chunk: string): string => chunk + randomBytes(RANDOM_BYTES).toString('hex');

export const chunkOf = (answer: string): string => answer.slice(0, CHUNK_DIGITS);

/** Name of a conversation that its client does not name: its first recorded answer. */
export const ownConversation = (firstAnswer: string): string => `conv_${firstAnswer}`;

/** Its first answer; null for a client's own name. */
export const firstAnswerOf = (conversation: string): string | null => OWN_CONVERSATION.exec(conversation)?.[1] ?? null;

/** Name of a conversation in keys of the store: a client's own name may be any text. */
export function conversationKeyOf(conversation: string): string {
  return firstAnswerOf(conversation) === null ? `name_${sha256Hex(conversation).slice(0, NAME_DIGITS)}` : conversation;
}

/** An id that Temper made: nobody guesses it. */
export const isGivenId = (id: string): boolean => parseAnswerId(id) !== null || firstAnswerOf(id) !== null;

/** Null if it is no answer's id in any API. */
export function parseAnswerId(text: string): string | null {
  return firstAnswerOf(text) === null ? (ANSWER.exec(text)?.[1] ?? null) : null;
}
