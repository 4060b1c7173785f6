/** Texts of people and models as literals of TypeScript: a text can neither end its literal nor hide what it says. */

/** Control and format characters (directions, zero widths, tags), private ones, and separators of lines and paragraphs. */
const HIDDEN = /\p{Cc}|\p{Cf}|\p{Co}|\p{Zl}|\p{Zp}/gu;

/** `'…'`, on one line. */
export function quoted(text: string): string {
  const escaped = text.toWellFormed().replaceAll(/[\\']/g, (character) => `\\${character}`);
  return `'${escaped.replaceAll(HIDDEN, escapeHidden)}'`;
}

/** A text, a number, a boolean, or a list of them. */
export function literal(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  return Array.isArray(value) ? `[${value.map(literal).join(', ')}]` : String(value);
}

/** A template literal without substitutions, whose lines are the text's. */
export function templateLiteral(text: string): string {
  const escaped = text
    .toWellFormed()
    .replaceAll('\r\n', '\n')
    .replaceAll(/[\\`]|\$(?=\{)/g, (character) => `\\${character}`);
  return `\`${escaped.replaceAll(HIDDEN, (character) => (character === '\n' ? character : escapeHidden(character)))}\``;
}

/** Text for a comment of one line. */
export function commentText(text: string): string {
  return text.toWellFormed().replaceAll(HIDDEN, ' ').replaceAll(/\s+/g, ' ').replaceAll('*/', '* /').trim();
}

function escapeHidden(character: string): string {
  if (character === '\n') return '\\n';
  return `\\u{${character.codePointAt(0)!.toString(16)}}`;
}
