import { printable } from '../../core/text/printable.ts';

/** Output of a command, replaceable in tests. */
export interface Output {
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly rows: number;
  readonly stream: NodeJS.WritableStream;
  line(text?: string): void;
  errorLine(text: string): void;
}

export function processOutput(): Output {
  const { stdout, stderr } = process;
  // `temper runs | head` is no error.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  return {
    get isTerminal() {
      return stdout.isTTY && process.env['TERM'] !== 'dumb';
    },
    get columns() {
      return stdout.columns ?? 80;
    },
    get rows() {
      return stdout.rows ?? 24;
    },
    stream: stdout,
    line: (text = '') => void stdout.write(`${text}\n`),
    errorLine: (text) => void stderr.write(`${text}\n`),
  };
}

/** Text of others as one line of at most `width` characters, before it gets a color. */
export function clipLine(text: string, width: number): string {
  const line = printable(text.replaceAll(/\s+/g, (blanks) => (/[\n\t]/.test(blanks) ? ' ' : blanks)));
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
}

/** All output to the terminal, except the live view's, passes here. */
export function printableOutput(output: Output): Output {
  return {
    get isTerminal() {
      return output.isTerminal;
    },
    get columns() {
      return output.columns;
    },
    get rows() {
      return output.rows;
    },
    stream: output.stream,
    line: (text = '') => output.line(printable(text)),
    errorLine: (text) => output.errorLine(printable(text)),
  };
}

export function printJson(output: Output, value: unknown): void {
  output.line(JSON.stringify(value, null, 2));
}
