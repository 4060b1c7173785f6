/** A child's output as one JSON line each in `.temper/logs/<name>.jsonl`; never a reason for the stack to fail. */
import { createWriteStream, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface ChildLog {
  /** Writes one line; returns it as a person should see it. */
  write(line: string): string;
  close(): void;
}

const MAX_BYTES = 20 * 1024 * 1024;

export function openChildLog(folder: string, name: string): ChildLog {
  const file = join(folder, `${name}.jsonl`);
  keepOneOlder(file);
  const stream = createWriteStream(file, { flags: 'a', mode: 0o600 });
  // A full disk stops the log, not the run; the next start opens it anew.
  stream.on('error', () => undefined);
  return {
    write(line) {
      const entry = parseEntry(line);
      stream.write(
        `${entry === null ? JSON.stringify({ level: 'info', time: new Date().toISOString(), process: name, msg: line }) : line}\n`,
      );
      return entry === null ? line : readable(entry, line);
    },
    close: () => stream.end(),
  };
}

function keepOneOlder(file: string): void {
  try {
    if (statSync(file).size > MAX_BYTES) renameSync(file, `${file}.1`);
  } catch {
    // No such file yet.
  }
}

function parseEntry(line: string): Record<string, unknown> | null {
  if (!line.startsWith('{')) return null;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** Only what concerns a person: the message and the error. */
function readable(entry: Record<string, unknown>, line: string): string {
  const message = entry.msg ?? entry.message;
  if (typeof message !== 'string') return line;
  const error = entry.error ?? entry.err;
  const detail = typeof error === 'string' ? error : (error as { message?: unknown } | undefined)?.message;
  return typeof detail === 'string' ? `${message}: ${detail}` : message;
}
