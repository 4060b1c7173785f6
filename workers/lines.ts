import type { Readable } from 'node:stream';

/** A line without an end is cut: what a child writes must not fill its parent's memory. */
const LONGEST_LINE = 65_536;

/** A stream's text, line by line; the last one needs no end. */
export function splitLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (text: string) => {
    // A carriage return at the end may be half of a line's end.
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
    if (rest.length <= LONGEST_LINE) return;
    onLine(rest);
    rest = '';
  });
  stream.on('end', () => {
    if (rest !== '') onLine(rest.replace(/\r$/, ''));
  });
}
