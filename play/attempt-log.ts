import { format } from 'node:util';

const MAX_LINES = 200;
const MAX_BYTES = 16_384;
/** Limit of one line, so that a long line is cut instead of dropped. */
const MAX_CHARACTERS = 4000;

/** Log of an agent in one attempt, bounded: it stays in the trajectory. */
export class AttemptLog {
  readonly #kept: string[] = [];
  #bytes = 0;
  #dropped = 0;

  add(values: readonly unknown[]): void {
    // Not even formatted: an agent may log without end.
    const line = this.#dropped > 0 ? null : clip(format(...values));
    const bytes = line === null ? 0 : Buffer.byteLength(line);
    if (line === null || this.#kept.length >= MAX_LINES || this.#bytes + bytes > MAX_BYTES) {
      this.#dropped += 1;
      return;
    }
    this.#kept.push(line);
    this.#bytes += bytes;
  }

  lines(): string[] {
    return this.#dropped === 0 ? this.#kept : [...this.#kept, `… ${this.#dropped} more lines were left out`];
  }
}

function clip(line: string): string {
  if (line.length <= MAX_CHARACTERS) return line;
  return `${line.slice(0, MAX_CHARACTERS)} … (${line.length - MAX_CHARACTERS} more characters)`;
}
