import { format } from 'node:util';

const MAX_LINES = 200;
const MAX_BYTES = 16_384;

/** What an agent logs in one attempt, bounded: it goes into the trajectory for ever. */
export class AttemptLog {
  private readonly kept: string[] = [];
  private bytes = 0;
  private dropped = 0;

  add(values: readonly unknown[]): void {
    const line = format(...values);
    const bytes = Buffer.byteLength(line);
    if (this.kept.length >= MAX_LINES || this.bytes + bytes > MAX_BYTES) {
      this.dropped += 1;
      return;
    }
    this.kept.push(line);
    this.bytes += bytes;
  }

  lines(): string[] {
    return this.dropped === 0 ? this.kept : [...this.kept, `… ${this.dropped} more lines were left out`];
  }
}
