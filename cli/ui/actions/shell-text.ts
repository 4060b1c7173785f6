/** Commands as a person can paste them into a shell. */

/** Words of a command; each is quoted if a shell would read it otherwise. */
export function shellText(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');
}

/** A flag with its value; nothing for a value that is absent. */
export function optionWords(flag: string, value: string | number | null | undefined): string[] {
  return value === null || value === undefined || value === '' ? [] : [`--${flag}`, String(value)];
}
