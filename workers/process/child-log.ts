/** A child's output as one JSON line each in `.temper/logs/<name>.jsonl`; never a reason for the stack to fail. */
import { createWriteStream, openSync, renameSync, statSync, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import { parseJson } from '../../core/text/json-text.ts';

export interface ChildLog {
  /** Writes one line; returns it as a person should see it. */
  write(line: string): string;
  close(): void;
}

/** Limit of each of the two files: an agent's output may be endless, the disk is not. */
const MAX_BYTES = 20 * 1024 * 1024;

export function openChildLog(folder: string, name: string, maxBytes = MAX_BYTES): ChildLog {
  const file = join(folder, `${name}.jsonl`);
  let { stream, bytes } = openFile(file, maxBytes);
  return {
    write(line) {
      const entry = parseEntry(line);
      const text = `${entry === null ? JSON.stringify({ level: 'info', time: new Date().toISOString(), process: name, msg: line }) : line}\n`;
      if (bytes > maxBytes) {
        stream?.end();
        ({ stream, bytes } = openFile(file, maxBytes, bytes));
      }
      bytes += Buffer.byteLength(text);
      stream?.write(text);
      return entry === null ? line : readable(entry, line);
    },
    close: () => void stream?.end(),
  };
}

/** `written` may not be on disk yet. */
function openFile(file: string, maxBytes: number, written = 0): { stream: WriteStream | null; bytes: number } {
  const bytes = keepOneOlder(file, maxBytes, written);
  return { stream: openStream(file), bytes };
}

/** Opened at once: what is written next may be due for another file already. A full disk stops the log, not the run. */
function openStream(file: string): WriteStream | null {
  try {
    const stream = createWriteStream(file, { fd: openSync(file, 'a', 0o600) });
    stream.on('error', () => undefined);
    return stream;
  } catch {
    return null;
  }
}

/** How large the file is that is written to from here on. */
function keepOneOlder(file: string, maxBytes: number, written: number): number {
  try {
    const bytes = Math.max(statSync(file).size, written);
    if (bytes <= maxBytes) return bytes;
    renameSync(file, `${file}.1`);
  } catch {
    // No such file yet, or a system that does not rename what is open: it is tried again after as much more.
  }
  return 0;
}

function parseEntry(line: string): Record<string, unknown> | null {
  const entry = line.startsWith('{') ? parseJson(line) : undefined;
  return (entry as Record<string, unknown> | undefined) ?? null;
}

/** Only what concerns a person: the message and the error. */
function readable(entry: Record<string, unknown>, line: string): string {
  const message = entry.msg ?? entry.message;
  if (typeof message !== 'string') return line;
  const error = entry.error ?? entry.err;
  const detail = typeof error === 'string' ? error : (error as { message?: unknown } | undefined)?.message;
  return typeof detail === 'string' ? `${message}: ${detail}` : message;
}
