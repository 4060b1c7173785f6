/** Output of a program, bounded: it may print without end, and without an end of a line. */
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';

/** Limit for stdout and stderr together. */
export const MAX_OUTPUT_BYTES = 16 * 1024 ** 2;
/** A result with a hundred metrics is shorter. */
const MAX_LINE = 65_536;
const KEPT_ERRORS = 200;
const LAST_ERRORS = 10;
/** Whoever holds the output open after all were ended is not waited for. */
const LAST_OUTPUT_MS = 1000;

/** Lines of stdout go to the log as they come, but for the last one, which may be the result; then those of stderr. */
export class ProgramOutput {
  readonly lastErrors: string[] = [];
  /** Resolves once the program has printed more than it may. */
  readonly overflow: Promise<'overflow'>;
  lastLine: string | null = null;
  readonly #firstErrors: string[] = [];
  readonly #log: (line: string) => void;
  readonly #read: Promise<unknown>;
  #bytes = 0;
  #overflow: () => void = () => undefined;

  constructor({ stdout, stderr }: { stdout: Readable | null; stderr: Readable | null }, log: (line: string) => void) {
    this.#log = log;
    this.overflow = new Promise((resolve) => (this.#overflow = () => resolve('overflow')));
    this.#read = Promise.all([
      this.#readLines(stdout, (line) => this.#addLine(line)),
      this.#readLines(stderr, (line) => this.#addError(line)),
    ]);
  }

  /** The program has ended: what it printed is read. */
  async end(): Promise<void> {
    const late = new AbortController();
    const limit = sleep(LAST_OUTPUT_MS, undefined, { signal: late.signal }).catch(() => undefined);
    await Promise.race([this.#read, limit]);
    late.abort();
  }

  /** Completes the log; the last line, where it is not part of the log. */
  close(takesLastLine: boolean): string | null {
    const { lastLine } = this;
    if (lastLine !== null && !takesLastLine) this.#log(lastLine);
    for (const line of this.#firstErrors) this.#log(line);
    return takesLastLine ? lastLine : null;
  }

  async #readLines(stream: Readable | null, onLine: (line: string) => void): Promise<void> {
    const decoder = new StringDecoder('utf8');
    let rest = '';
    const push = (text: string): void => {
      const lines = (rest + text).split('\n');
      rest = (lines.pop() ?? '').slice(0, MAX_LINE);
      for (const line of lines) onLine(line.slice(0, MAX_LINE).replace(/\r$/, ''));
    };
    try {
      for await (const chunk of (stream ?? []) as AsyncIterable<Buffer>) {
        this.#bytes += chunk.length;
        if (this.#bytes > MAX_OUTPUT_BYTES) this.#overflow();
        else push(decoder.write(chunk));
      }
    } catch {
      // The program was ended in the middle of it; what came before counts.
    }
    push(decoder.end());
    if (rest !== '') onLine(rest);
  }

  #addLine(line: string): void {
    if (line.trim() === '') return;
    if (this.lastLine !== null) this.#log(this.lastLine);
    this.lastLine = line;
  }

  #addError(line: string): void {
    if (this.#firstErrors.length < KEPT_ERRORS) this.#firstErrors.push(line);
    this.lastErrors.push(line);
    if (this.lastErrors.length > LAST_ERRORS) this.lastErrors.shift();
  }
}
