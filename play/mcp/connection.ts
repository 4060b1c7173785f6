/** One connection to an MCP server: begun within a deadline, asked, and ended when nothing is under way any more. */
import { setTimeout as sleep } from 'node:timers/promises';
import { badConfig } from '../../core/contract/failures.ts';
import { createBoundedFetch } from './bounded-fetch.ts';
import { loadSdk, type McpSdk } from './mcp-sdk.ts';
import { asHttpFailure, asStartFailure, CallFailed, ServerLost, TimedOut } from './server-errors.ts';
import type { CommandSpec, ServerSpec, UrlSpec } from './server-spec.ts';
import { isOwnSignal } from '../programs/process-tree.ts';
import { StdioTransport } from './stdio-transport.ts';

type Method = keyof McpSdk['results'];
type Result<M extends Method> = McpSdk['results'][M]['_zod']['output'];
type Client = InstanceType<McpSdk['Client']>;

/** An answer whose stream ended without a result may still be on its way through the SDK. */
const LATE_ANSWER_MS = 2000;
/** After a call that took too long: a server that answers this is well. */
const PING_MS = 5000;
/** How long the end of a session may take. */
const FAREWELL_MS = 2000;
/** The SDK has limits of its own, which ours replace. */
const NEVER_MS = 2 ** 31 - 1;
/** Cannot come from a server: its identity is compared. */
const NO_ANSWER = {};

type Params = Record<string, unknown>;

interface Limits {
  readonly ms: number;
  readonly signal?: AbortSignal;
}

interface Link {
  readonly transport: StdioTransport | InstanceType<McpSdk['HttpTransport']>;
  /** How the server ended by itself, or was ended from outside; null if not. */
  readonly death: () => ServerLost | null;
  /** It ends, or has ended, whatever for. */
  readonly isClosed: () => boolean;
  readonly lastErrors: () => readonly string[];
  readonly end: () => Promise<void>;
}

export class Connection {
  readonly redact: Redact;
  readonly #spec: ServerSpec;
  readonly #sdk: McpSdk;
  readonly #client: Client;
  readonly #link: Link;
  #pending = new Set<Promise<unknown>>();
  /** The server hangs or has forgotten this client: new calls go elsewhere. */
  #isGivenUp = false;

  constructor(spec: ServerSpec, sdk: McpSdk, client: Client, link: Link) {
    this.#spec = spec;
    this.#sdk = sdk;
    this.#client = client;
    this.#link = link;
    this.redact = redactor(spec);
  }

  /** Throws BadConfig where it can never start, ProgramFailed where it did not. */
  static async open(spec: ServerSpec, folder: string): Promise<Connection> {
    const sdk = await loadSdk();
    const link = spec.kind === 'command' ? openCommand(spec, folder, sdk) : openUrl(spec, sdk);
    const client = new sdk.Client({ name: 'temper-rl', version: '1' }, { capabilities: {} });
    const late = new AbortController();
    const { startTimeoutMs } = spec;
    const deadline = sleep(startTimeoutMs, undefined, { signal: late.signal }).then(() => {
      throw new Error(`initialize took longer than startTimeoutMs ${startTimeoutMs}`);
    });
    const connecting = client.connect(link.transport, { timeout: NEVER_MS });
    try {
      await Promise.race([connecting, deadline]);
    } catch (error) {
      connecting.catch(() => undefined);
      const failure = link.death() ?? (spec.kind === 'url' ? asHttpFailure(error, spec) : null) ?? error;
      await link.end();
      throw asStartFailure(failure, spec, link.lastErrors().map(redactor(spec)));
    } finally {
      late.abort();
      deadline.catch(() => undefined);
    }
    return new Connection(spec, sdk, client, link);
  }

  get isUsable(): boolean {
    return !this.#isGivenUp && !this.#link.isClosed();
  }

  offers(what: 'tools' | 'resources'): boolean {
    return this.#client.getServerCapabilities()?.[what] !== undefined;
  }

  /**
   * Throws CallFailed for what a model may be told, ServerLost or TemperError for the rest. Aborted by `signal`, the server
   * is told that nobody waits any more.
   */
  async ask<M extends Method>(method: M, params: Params = {}, signal?: AbortSignal): Promise<Result<M>> {
    const { callTimeoutMs } = this.#spec;
    const asked = this.#request(method, params, { ms: callTimeoutMs, ...(signal && { signal }) });
    this.#pending.add(asked);
    try {
      return await asked;
    } catch (error) {
      // Whether it could be ended or not, it gets no more calls.
      if (error instanceof TimedOut) this.#checkHealth().catch(() => undefined);
      throw error;
    } finally {
      this.#pending.delete(asked);
    }
  }

  /** Once what is under way has ended: the time of each call is limited. */
  async end(): Promise<void> {
    this.#isGivenUp = true;
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    await this.#link.end();
  }

  /** At once, whatever is under way: the attempt that it belongs to is over. */
  async abandon(): Promise<void> {
    this.#isGivenUp = true;
    await this.#link.end();
  }

  async #request<M extends Method>(method: M, params: Params, { ms, signal }: Limits): Promise<Result<M>> {
    if (this.#link.isClosed()) throw this.#lost(false);
    const over = new AbortController();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      over.abort('it took too long');
    }, ms);
    const cancel = (): void => over.abort('the attempt is over');
    signal?.addEventListener('abort', cancel, { once: true });
    if (signal?.aborted === true) cancel();
    try {
      const options = { signal: over.signal, timeout: NEVER_MS };
      return await this.#client.request({ method, params }, this.#sdk.results[method], options);
    } catch (error) {
      if (signal?.aborted === true) throw new Error('the attempt is over', { cause: error });
      if (isLate) throw new TimedOut(`the server did not answer within ${ms} ms`);
      throw this.#explain(error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', cancel);
    }
  }

  #explain(error: unknown): Error {
    if (this.#link.isClosed()) return this.#lost(true);
    if ((error as { data?: unknown }).data === NO_ANSWER)
      return new ServerLost('the server closed the connection without an answer', { isOutage: true });
    const http = this.#spec.kind === 'url' ? asHttpFailure(error, this.#spec) : null;
    if (http !== null) {
      if (http instanceof ServerLost) this.#isGivenUp = true;
      return http;
    }
    const { name, message } = error as Error;
    if (name === 'McpError') return new CallFailed(message.replace(/^MCP error -?\d+: /, ''));
    return new CallFailed('the answer of the server does not follow the protocol');
  }

  #lost(wasSent: boolean): ServerLost {
    const { message, isOutage } = this.#link.death() ?? { message: 'the server was ended', isOutage: true };
    return new ServerLost(message, { isOutage, wasSent });
  }

  /** A server that hangs gets no more calls; those under way keep it. */
  async #checkHealth(): Promise<void> {
    try {
      await this.#request('ping', {}, { ms: PING_MS });
    } catch {
      await this.end();
    }
  }
}

function openCommand(spec: CommandSpec, folder: string, { parseMessage }: McpSdk): Link {
  const transport = new StdioTransport(spec, folder, parseMessage);
  return {
    transport,
    death: () => deathOf(transport),
    isClosed: () => transport.isClosed,
    lastErrors: () => transport.lastErrors.lines(),
    end: () => transport.close(),
  };
}

function deathOf({ breach, exit }: StdioTransport): ServerLost | null {
  if (breach !== null) return new ServerLost(breach, { isOutage: false });
  if (exit === null) return null;
  const { code, signal } = exit;
  if (signal === null) return new ServerLost(`the server ended with exit code ${code}`, { isOutage: false });
  return new ServerLost(`the server was ended by ${signal}`, { isOutage: !isOwnSignal(signal) });
}

function openUrl(spec: UrlSpec, { HttpTransport }: McpSdk): Link {
  const waiting = new Set<NodeJS.Timeout>();
  let isClosed = false;
  const forget = (): void => {
    for (const timer of waiting) clearTimeout(timer);
    waiting.clear();
  };
  const fetch = createBoundedFetch({
    onResume: forget,
    onEnd: (id) => {
      if (id === null) return;
      const timer = setTimeout(() => {
        waiting.delete(timer);
        const error = { code: -32000, message: 'no answer', data: NO_ANSWER };
        transport.onmessage?.({ jsonrpc: '2.0', id, error });
      }, LATE_ANSWER_MS).unref();
      waiting.add(timer);
    },
  });
  const transport = new HttpTransport(new URL(spec.url), { fetch, requestInit: { headers: headersOf(spec) } });
  return {
    transport,
    death: () => null,
    isClosed: () => isClosed,
    lastErrors: () => [],
    end: async () => {
      isClosed = true;
      forget();
      const farewell = transport.terminateSession().catch(() => undefined);
      await Promise.race([farewell, sleep(FAREWELL_MS, undefined, { ref: false })]);
      await transport.close();
    },
  };
}

function headersOf({ headers, keyVariable }: UrlSpec): Record<string, string> {
  if (keyVariable === null) return { ...headers };
  const key = process.env[keyVariable];
  if (key === undefined || key === '')
    throw badConfig(`keyVariable of mcp names ${keyVariable}, which is not set; set it to the key`);
  return { ...headers, authorization: `Bearer ${key}` };
}

type Redact = (text: string) => string;

/** A shorter value is hardly a secret, and would stand in any text. */
const SHORTEST = 8;

/** Secrets of an MCP server that stand in what it says: results are kept for ever. */
function redactor(spec: ServerSpec): Redact {
  const secrets = secretsOf(spec).filter(([, value]) => value.length >= SHORTEST);
  const found = secrets.flatMap(([name, value]) => [
    [name, value] as const,
    [name, JSON.stringify(value).slice(1, -1)] as const,
  ]);
  return (text) => found.reduce((redacted, [name, value]) => redacted.replaceAll(value, `<${name}>`), text);
}

function secretsOf(spec: ServerSpec): [name: string, value: string][] {
  const names = spec.kind === 'command' ? spec.passed : [spec.keyVariable ?? ''];
  const passed = names.map((name): [string, string] => [name, process.env[name] ?? '']);
  if (spec.kind === 'command') return passed;
  const headers = Object.entries(spec.headers);
  return [...passed, ...headers.map(([name, value]): [string, string] => [name, value.replace(/^Bearer /i, '')])];
}
