/** Where a command writes, so that tests can read it. */
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

export function printJson(output: Output, value: unknown): void {
  output.line(JSON.stringify(value, null, 2));
}
