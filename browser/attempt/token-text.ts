/** How a token's text is shown: white space and control characters are visible, a token without text shows its id. */
import type { TurnTokens } from '../../views/api/attempt-views.ts';

export function isControlToken(turn: TurnTokens, index: number): boolean {
  return turn.control.includes(index);
}

/**
 * Begins of lists of at most `size` tokens: after the end of a line if there is one, as a break inside a line would be
 * taken for the text's.
 */
export function chunkStarts({ ids, text }: Pick<TurnTokens, 'ids' | 'text'>, size: number): number[] {
  const starts: number[] = [];
  for (let from = 0; from < ids.length;) {
    starts.push(from);
    const end = from + size;
    const lineEnd = end < ids.length ? text.slice(from, end).findLastIndex((token) => token.endsWith('\n')) : -1;
    from = lineEnd < 0 ? end : from + lineEnd + 1;
  }
  return starts;
}

/** `isMarked`: each space as a dot; otherwise only those of tokens that are nothing else. */
export function showToken(text: string, isMarked: boolean): string {
  const visible = text
    .replaceAll('\r', '␍')
    .replaceAll('\n', '↵\n')
    .replaceAll('\t', '⇥')
    // Other control characters, and those that turn the direction of the text around.
    .replace(/(?!\n)[\p{Cc}\p{Cf}]/gu, codeOf);
  return isMarked || text.trim() === '' ? visible.replace(/ /g, '·') : visible;
}

function codeOf(character: string): string {
  // Parts of an emoji stand together: the joiner shows nothing by itself.
  if (character === '\u200d') return character;
  return `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`;
}
