/**
 * A fake engine: a real HTTP server that answers as `POST /v1/chat/completions` of the GPU worker does, with text that
 * depends on (policy, request, seed) only, and fails as it is told. It counts what it executed.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

import { hashOf, sha256Hex } from '../core/text/hashes.ts';
import { parsePolicyName } from '../core/names/policy-name.ts';

export const FAKE_ENGINE_KEY = 'fake-engine-key';

export interface FakeRequest {
  model: string;
  messages: { role: string; content: string | null; tool_calls?: unknown; tool_call_id?: string }[];
  seed: number;
  temperature: number;
  max_tokens: number;
  n?: number;
  stop?: string | string[];
  tools?: unknown[];
  tool_choice?: unknown;
  parallel_tool_calls?: boolean;
  logprobs?: boolean;
  return_token_ids?: boolean;
}

export interface FakeCall {
  request: FakeRequest;
  headers: IncomingHttpHeaders;
  /** The value of `x-temper-call`. */
  call: string;
}

/** The parts of an answer; the rest follows from it. */
export interface FakeAnswer {
  /** Null where tool calls stand alone, as with the GPU worker. */
  content: string | null;
  /** Absent where the model does not think. */
  thoughts?: string;
  finishReason?: 'stop' | 'length';
  toolCalls?: unknown[];
  malformedToolCalls?: number;
}

/**
 * `destroy` cuts the connection; `hang` never answers; `body` is sent as it is; `cut` sends the beginning of a good answer
 * and then closes, `stall` sends it and then nothing.
 */
export type FakeFailure =
  | { status: number; body?: string; headers?: Record<string, string> }
  | { cut: 'with its length' | 'chunked' }
  | { stall: true }
  | { destroy: true }
  | { hang: true };

export interface FakeEngineOptions {
  /** The policy's answer; by default a digit drawn by the seed. */
  answer?: (request: FakeRequest) => FakeAnswer | string;
  /** The hash behind a policy's name; by default of its branch and step, `null` for a base model. */
  adapterSha256?: (model: string) => string | null;
  delayMs?: number;
  /** Log-probabilities tell the text of each token, and not its id. */
  spellsTokens?: boolean;
}

export interface FakeEngine {
  readonly url: string;
  readonly key: string;
  /** Calls that were executed, in order of their end; failures are not among them. */
  readonly executed: FakeCall[];
  /** Every request that arrived, failures included. */
  readonly received: number;
  /** The next requests fail so, one each, before any is executed. */
  failNext(...failures: FakeFailure[]): void;
  /** Asked for every request; null executes it. */
  failWhen(rule: (call: FakeCall, received: number) => FakeFailure | null): void;
  /** Nobody listens any more, until `start`: connections are refused. */
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** The adapter that a fake checkpoint holds: by its place, not by its run's name. */
export function fakeAdapterSha256(model: string): string | null {
  const policy = parsePolicyName(model);
  if (policy === null) return null;
  const other = policy.policy === undefined ? '' : ` ${policy.policy}`;
  return sha256Hex(`fake adapter ${policy.branch} ${policy.step}${other}`);
}

export async function startFakeEngine(options: FakeEngineOptions = {}): Promise<FakeEngine> {
  const engine = new Fake(options);
  await engine.start();
  return engine;
}

class Fake implements FakeEngine {
  readonly key = FAKE_ENGINE_KEY;
  readonly executed: FakeCall[] = [];
  received = 0;
  #port = 0;
  #server: Server | null = null;
  readonly #queued: FakeFailure[] = [];
  #rule: (call: FakeCall, received: number) => FakeFailure | null = () => null;
  readonly #options: FakeEngineOptions;

  constructor(options: FakeEngineOptions) {
    this.#options = options;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  failNext(...failures: FakeFailure[]): void {
    this.#queued.push(...failures);
  }

  failWhen(rule: (call: FakeCall, received: number) => FakeFailure | null): void {
    this.#rule = rule;
  }

  async start(): Promise<void> {
    const server = createServer((request, response) => void this.#serve(request, response));
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.#server = null;
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  }

  close(): Promise<void> {
    return this.stop();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    if (request.url === '/health') return send(response, 200, { status: 'ok', boot: 'fake' });
    if (request.headers.authorization !== `Bearer ${this.key}`)
      return send(response, 401, errorBody('wrong key', null));
    if (request.url !== '/v1/chat/completions') return send(response, 404, errorBody(`no ${request.url}`, null));
    this.received += 1;
    const header = request.headers['x-temper-call'];
    const call: FakeCall = {
      request: JSON.parse(body) as FakeRequest,
      headers: request.headers,
      call: typeof header === 'string' ? header : '',
    };
    const failure = this.#queued.shift() ?? this.#rule(call, this.received);
    if (failure !== null) return fail(request, response, failure);
    if (this.#options.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, this.#options.delayMs));
    this.executed.push(call);
    send(response, 200, this.#complete(call.request));
  }

  #complete(request: FakeRequest): object {
    const promptTokenIds = encode(request.messages.map(({ role, content }) => `<${role}>${content ?? ''}`).join(''));
    const choices = Array.from({ length: request.n ?? 1 }, (_, index) => this.#choose(request, index));
    return {
      id: `chatcmpl-${hashOf(request).slice(0, 24)}`,
      object: 'chat.completion',
      created: 0,
      model: request.model,
      adapter_sha256: (this.#options.adapterSha256 ?? fakeAdapterSha256)(request.model),
      ...(request.return_token_ids === true ? { prompt_token_ids: promptTokenIds } : {}),
      choices,
      usage: { prompt_tokens: promptTokenIds.length, completion_tokens: 2, total_tokens: promptTokenIds.length + 2 },
    };
  }

  #choose(request: FakeRequest, index: number): object {
    const seeded = { ...request, seed: request.seed + index };
    const answer = (this.#options.answer ?? drawDigit)(seeded);
    const {
      content,
      thoughts,
      finishReason = 'stop',
      toolCalls,
      malformedToolCalls,
    }: FakeAnswer = typeof answer === 'string' ? { content: answer } : answer;
    const tokenIds = [...encode(content ?? ''), END_OF_TURN];
    return {
      index,
      message: {
        role: 'assistant',
        content,
        ...(thoughts === undefined ? {} : { reasoning_content: thoughts }),
        ...(toolCalls === undefined ? {} : { tool_calls: toolCalls }),
      },
      finish_reason: finishReason,
      ...(malformedToolCalls === undefined ? {} : { malformed_tool_calls: malformedToolCalls }),
      ...(request.return_token_ids === true ? { token_ids: tokenIds } : {}),
      ...(request.logprobs === true
        ? {
            logprobs: {
              content: tokenIds.map((id) => ({
                token: this.#options.spellsTokens ? String.fromCodePoint(id) : String(id),
                logprob: -id / 100,
                bytes: null,
                top_logprobs: [],
              })),
            },
          }
        : {}),
    };
  }
}

const END_OF_TURN = 1;

/** One token per character. */
function encode(text: string): number[] {
  return Array.from(text, (character) => character.codePointAt(0) ?? 0);
}

function drawDigit({ seed }: FakeRequest): string {
  return String(Number.parseInt(sha256Hex(String(seed)).slice(0, 8), 16) % 10);
}

function errorBody(message: string, code: string | null): object {
  return { error: { message, type: 'fake_engine', code } };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function fail(request: IncomingMessage, response: ServerResponse, failure: FakeFailure): void {
  if ('hang' in failure) return;
  if ('cut' in failure || 'stall' in failure) {
    const length = 'cut' in failure && failure.cut === 'with its length' ? { 'content-length': '4000' } : {};
    response.writeHead(200, { 'content-type': 'application/json', ...length });
    response.write('{"id":"chatcmpl-1","choices":[{"message":{"role":"assi', () => {
      if ('cut' in failure) request.socket.destroy();
    });
    return;
  }
  if ('destroy' in failure) {
    request.socket.destroy();
    return;
  }
  const body = failure.body ?? JSON.stringify(errorBody(`scripted failure ${failure.status}`, null));
  response.writeHead(failure.status, { 'content-type': 'application/json', ...failure.headers }).end(body);
}
