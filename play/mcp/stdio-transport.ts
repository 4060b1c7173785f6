/** An MCP server as a process: messages are lines of its stdin and stdout. It ends with all that it started. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { badConfig } from '../../core/contract/failures.ts';
import { programEnvironment } from '../programs/environment.ts';
import { ProcessTree, type Exit } from '../programs/process-tree.ts';
import { processLeash } from '../programs/program-leash.ts';
import type { McpSdk } from './mcp-sdk.ts';
import type { CommandSpec } from './server-spec.ts';

type Message = ReturnType<McpSdk['parseMessage']>;

/** Limit of one message; a larger one ends the server. */
export const MAX_MESSAGE_BYTES = 16 * 1024 ** 2;
/** The server's last output is read so long after its end. */
const LAST_OUTPUT_MS = 50;
/** A server may end by itself once its stdin has. */
const GRACE_MS = 500;

export class StdioTransport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: Message) => void;
  /** How it ended; null while it runs. */
  exit: Exit | null = null;
  /** It broke a limit; null if not. */
  breach: string | null = null;
  readonly lastErrors = new LastLines();
  readonly #spec: CommandSpec;
  readonly #place: { readonly folder: string; readonly env: NodeJS.ProcessEnv };
  readonly #parse: McpSdk['parseMessage'];
  #tree: ProcessTree | null = null;
  #ending: Promise<void> | null = null;

  constructor(spec: CommandSpec, folder: string, parse: McpSdk['parseMessage']) {
    this.#spec = spec;
    this.#place = { folder, env: environmentOf(spec) };
    this.#parse = parse;
  }

  async start(): Promise<void> {
    const { command, args } = this.#spec;
    const { folder: cwd, env } = this.#place;
    const tree = new ProcessTree([command, ...args], { cwd, env, leash: processLeash(), takesInput: true });
    this.#tree = tree;
    const { process: child } = tree;
    await Promise.race([once(child, 'spawn'), tree.exit]);
    // A call that waits keeps this process alive, an idle server does not.
    for (const part of [child, child.stdin, child.stdout, child.stderr]) (part as { unref?: () => void }).unref?.();
    const lines = new LineReader(MAX_MESSAGE_BYTES, (line) => this.#read(line));
    child.stdout.on('data', (chunk: Buffer) => {
      if (!lines.push(chunk)) this.#break(`the server sent a message of more than ${MAX_MESSAGE_BYTES} bytes`);
    });
    child.stderr.on('data', (chunk: Buffer) => this.lastErrors.push(chunk));
    child.stdin?.on('error', (error) => this.onerror?.(error));
    tree.exit.then((exit) => this.#ended(exit)).catch((error: unknown) => this.onerror?.(error as Error));
  }

  /** Resolves once the message is on its way: the server may be slow to read. */
  send(message: Message): Promise<void> {
    const stdin = this.#tree?.process.stdin;
    // The server has ended, or will be found to hang.
    if (!stdin?.writable) return Promise.resolve();
    if (stdin.write(`${JSON.stringify(message)}\n`)) return Promise.resolve();
    return Promise.race([once(stdin, 'drain'), once(stdin, 'close')]).then(() => undefined);
  }

  /** It ends, or has ended. */
  get isClosed(): boolean {
    return this.#ending !== null;
  }

  close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    const tree = this.#tree;
    if (tree === null) return this.onclose?.();
    if (this.exit === null && this.breach === null) {
      tree.process.stdin?.end();
      const late = new AbortController();
      const grace = sleep(GRACE_MS, undefined, { signal: late.signal }).catch(() => undefined);
      await Promise.race([tree.exit.catch(() => undefined), grace]);
      late.abort();
    }
    await tree.end();
    for (const part of [tree.process.stdin, tree.process.stdout, tree.process.stderr]) part?.destroy();
    this.onclose?.();
  }

  async #ended(exit: Exit): Promise<void> {
    await sleep(LAST_OUTPUT_MS);
    this.exit = exit;
    await this.close();
  }

  #break(rule: string): void {
    this.breach ??= rule;
    this.close().catch((error: unknown) => this.onerror?.(error as Error));
  }

  #read(line: string): void {
    if (line.trim() === '') return;
    try {
      this.onmessage?.(this.#parse(line));
    } catch (error) {
      // Some servers print a greeting on stdout.
      this.onerror?.(error as Error);
    }
  }
}

/** No key of an engine, a store or a hosted model; what the spec adds comes last. */
function environmentOf({ env, passed }: CommandSpec): NodeJS.ProcessEnv {
  const missing = passed.find((name) => process.env[name] === undefined);
  if (missing !== undefined)
    throw badConfig(`env of mcp names ${missing}, which is not set here; set it, or leave it out`);
  const secrets = Object.fromEntries(passed.map((name) => [name, process.env[name]]));
  return { ...programEnvironment(process.env), ...secrets, ...env };
}

const KEPT_BYTES = 4096;
const KEPT_LINES = 5;
const SHOWN_CHARACTERS = 150;

/** The end of what a server printed to stderr, for messages. */
class LastLines {
  #text = '';

  push(chunk: Buffer): void {
    this.#text = (this.#text + chunk.toString('utf8')).slice(-KEPT_BYTES);
  }

  lines(): string[] {
    const lines = this.#text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
    return lines.slice(-KEPT_LINES).map((line) => line.slice(0, SHOWN_CHARACTERS));
  }
}

/** Lines out of chunks, of bounded length, without copying what came before again and again. */
const NEWLINE = 10;

class LineReader {
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
