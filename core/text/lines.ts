/**
 * JSON Lines, of which a line feed alone ends one. Node's readline splits at U+2028 and U+2029 too, from version 24 on,
 * and these may stand in a JSON string.
 */
export class LineSplitter {
  #rest = '';

  /** The lines that end in `text`, without their ends. */
  push(text: string): string[] {
    const [first, ...others] = text.split('\n');
    this.#rest += first!;
    if (others.length === 0) return [];
    const lines = [this.#rest, ...others];
    this.#rest = lines.pop()!;
    return lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  }

  /** Returns the text after the last line break. */
  end(): string[] {
    return this.#rest === '' ? [] : this.push('\n');
  }
}
