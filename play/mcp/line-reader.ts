/** Lines out of chunks, of bounded length, without copying what came before again and again. */
const NEWLINE = 10;

export class LineReader {
  readonly #most: number;
  readonly #onLine: (line: string) => void;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(most: number, onLine: (line: string) => void) {
    this.#most = most;
    this.#onLine = onLine;
  }

  /** False once a line is too long; nothing is kept of it. */
  push(chunk: Buffer): boolean {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      if (!this.#keep(chunk.subarray(start, end))) return false;
      const line = Buffer.concat(this.#chunks, this.#bytes).toString('utf8');
      this.#chunks = [];
      this.#bytes = 0;
      this.#onLine(line);
      start = end + 1;
    }
    return this.#keep(chunk.subarray(start));
  }

  #keep(part: Buffer): boolean {
    this.#bytes += part.length;
    if (this.#bytes > this.#most) {
      this.#chunks = [];
      return false;
    }
    if (part.length > 0) this.#chunks.push(part);
    return true;
  }
}
