/** The end of what a server printed to stderr, for messages. */
const KEPT_BYTES = 4096;
const KEPT_LINES = 5;
const SHOWN_CHARACTERS = 150;

export class LastLines {
  #text = '';

  push(chunk: Buffer): void {
    this.#text = (this.#text + chunk.toString('utf8')).slice(-KEPT_BYTES);
  }

  lines(): string[] {
    const lines = this.#text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
    return lines.slice(-KEPT_LINES).map((line) => line.slice(0, SHOWN_CHARACTERS));
  }
}
