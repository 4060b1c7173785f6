/** JSON that a model wrote, indented without being read as values: numbers, order and duplicate keys stay as written. */

/** Longer texts stay as they are. */
const MOST_CHARACTERS = 200_000;
/** A string, a mark, or what stands between them: number, word. */
const PIECES = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Null if the text is no JSON object or array. */
export function indentJson(text: string): string | null {
  const trimmed = text.trim();
  if (!/^[{[]/.test(trimmed) || trimmed.length > MOST_CHARACTERS || !isJson(trimmed)) return null;
  const pieces = trimmed.match(PIECES) ?? [];
  let depth = 0;
  return pieces
    .map((piece, at) => {
      if (OPENING.has(piece)) {
        if (CLOSING.has(pieces[at + 1]!)) return piece;
        depth += 1;
        return piece + newLine(depth);
      }
      if (CLOSING.has(piece)) {
        if (OPENING.has(pieces[at - 1]!)) return piece;
        depth -= 1;
        return newLine(depth) + piece;
      }
      if (piece === ',') return `,${newLine(depth)}`;
      return piece === ':' ? ': ' : piece;
    })
    .join('');
}

const OPENING: ReadonlySet<string> = new Set(['{', '[']);
const CLOSING: ReadonlySet<string> = new Set(['}', ']']);

function newLine(depth: number): string {
  return `\n${'  '.repeat(depth)}`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // A text of another kind is shown as it is.
  }
}
