/**
 * JSON as its author wrote it: JavaScript would change numbers beyond 2^53 and `1.0`, and put names that look like numbers
 * first. Blanks between tokens go, and each string is escaped in one way. Expects text that `JSON.parse` takes.
 */

/** Undefined where the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Members of an object, in order; values as text. */
export type Members = readonly (readonly [name: string, value: string])[];

const PIECE = /["{}[\],:]|\s+|[^\s"{}[\],:]+/y;

/** Refuses, by an `Error`, half of a surrogate pair: it is JSON, but no text. */
export function compactJson(text: string): string {
  let compact = '';
  for (const { token } of tokensOf(text)) compact += token.startsWith('"') ? escapedOnce(token) : token.trim();
  return compact;
}

/** Replaces lone surrogates with U+FFFD, as encoding in UTF-8 would. */
export function wellFormed<T>(value: T): T {
  const json = JSON.stringify(value) ?? 'null';
  const repaired = wellFormedJson(json);
  return repaired === json ? value : (JSON.parse(repaired) as T);
}

/** Fixes the output of `JSON.stringify`: it escapes lone surrogates, which other readers of JSON refuse. */
export function wellFormedJson(json: string): string {
  return json.replace(/\\(?:ud[89a-f][\da-f]{2}|.)/g, (escape) => (escape.length > 2 ? '\uFFFD' : escape));
}

/** Throws an `Error` for a duplicate name: readers differ in which of the values they take. */
export function membersOf(object: string): Members {
  const members = partsOf(object).map((part) => {
    const name = part.slice(0, endOfString(part, 0));
    return [JSON.parse(name) as string, part.slice(name.length + 1)] as const;
  });
  const names = new Set<string>();
  for (const [name] of members) {
    if (names.has(name)) throw new Error(`"${name}" stands twice in one object`);
    names.add(name);
  }
  return members;
}

/** Members of an object, or items of a list, of compact JSON. */
export function partsOf(compact: string): string[] {
  const parts: string[] = [];
  let [depth, begin] = [0, 1];
  for (const { token, index } of tokensOf(compact)) {
    if (token === '{' || token === '[') depth++;
    if (token === '}' || token === ']') depth--;
    const ends = (token === ',' && depth === 1) || depth === 0;
    if (!ends) continue;
    if (index > begin) parts.push(compact.slice(begin, index));
    begin = index + 1;
  }
  return parts;
}

function* tokensOf(text: string): Generator<{ token: string; index: number }> {
  for (let index = 0; index < text.length;) {
    PIECE.lastIndex = index;
    const isString = text[index] === '"';
    const end = isString ? endOfString(text, index) : index + (PIECE.exec(text)?.[0].length ?? 1);
    yield { token: text.slice(index, end), index };
    index = end;
  }
}

/** A regular expression that steps over escapes has no room for a string of 8 MB. */
function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === '\\') escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
  return text.length;
}

function escapedOnce(string: string): string {
  const text = JSON.parse(string) as string;
  if (text.isWellFormed()) return JSON.stringify(text);
  throw new Error(`${string.slice(0, 100)} holds half of a surrogate pair, which is no character`);
}
