/** Text of tokens from their bytes. */
import type { Vocabulary } from '../context/context.ts';

/** Tokens before a part of a text that its first character may have begun in: UTF-8 takes at most four bytes. */
export const WARM_UP = 4;

/**
 * Text of each token. A character that takes several tokens is that of the last of them, and the ones before it have no
 * text of their own; bytes that are no UTF-8 are U+FFFD.
 */
export function decodePieces(vocabulary: Vocabulary, ids: readonly number[], before: readonly number[] = []): string[] {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  for (const id of before) decoder.decode(vocabulary.bytesOf(id), { stream: true });
  const text = ids.map((id) => decoder.decode(vocabulary.bytesOf(id), { stream: true }));
  const rest = decoder.decode();
  const last = text.pop();
  return last === undefined ? [] : [...text, last + rest];
}
