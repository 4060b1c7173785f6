const CONTROL = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Escapes control characters and changes of text direction as JSON does, so that text of agents, models and other runs
 * cannot control the terminal, and JSON stays the same JSON.
 */
export function printable(text: string): string {
  const escape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return text
    .replaceAll('\r\n', '\n')
    .replace(CONTROL, (character) => (character === '\n' || character === '\t' ? character : escape(character)));
}
