/**
 * A judge as a provider serves it: a real HTTP server with an OpenAI-compatible endpoint. It believes whatever stands
 * outside the prompt's blocks, and looks at what is inside them with the eyes of a reader: it scores an attempt by the
 * words in it. It counts what it answered, and fails as it is told.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export const JUDGE_KEY = 'scripted-judge-key';
export const JUDGE_KEY_VARIABLE = 'TEMPER_TEST_JUDGE_KEY';

export interface AskedMessage {
  role: string;
  content: string;
}

export interface AskedQuestion {
  model: string;
  messages: AskedMessage[];
  authorization: string | undefined;
  body: Record<string, unknown>;
}

/** The contents of a prompt, by its delimiters alone. */
export interface ReadPrompt {
  rules: string;
  task: string[];
  tools: string[];
  /** Lines by the attempt's name, as they stand there. */
  attempts: Map<string, string[]>;
  /** All that stands outside of every block. */
  outside: string;
}

export interface JudgeReply {
  status?: number;
  headers?: Record<string, string>;
  /** Sent as the whole body; else a completion with this text. */
  body?: string;
  text?: string;
  finishReason?: string;
  usage?: Record<string, unknown>;
  hang?: boolean;
  destroy?: boolean;
}

export interface ScriptedJudge {
  readonly url: string;
  /** Every question that arrived, in order. */
  readonly asked: AskedQuestion[];
  /** The next questions are answered so, one each. */
  replyNext(...replies: JudgeReply[]): void;
  /** How it scores an attempt, by its lines as JSON. */
  scoreBy(score: (lines: readonly unknown[]) => number): void;
  close(): Promise<void>;
}

const OPENING = /^<(task|tools|attempt) ([\w-]+)>$/;

export function readPrompt(messages: readonly AskedMessage[]): ReadPrompt {
  const [rules, ...others] = messages;
  const read: ReadPrompt = { rules: rules?.content ?? '', task: [], tools: [], attempts: new Map(), outside: '' };
  let block: { closing: string; lines: string[] } | null = null;
  for (const line of others.flatMap(({ content }) => content.split(/\r\n|[\n\r\u2028\u2029\u0085\v\f]/))) {
    const [, kind, name = ''] = OPENING.exec(line) ?? [];
    if (block !== null && line === block.closing) block = null;
    else if (block !== null) block.lines.push(line);
    else if (kind === undefined) read.outside += `${line}\n`;
    else {
      block = { closing: `</${kind} ${name}>`, lines: [] };
      if (kind === 'task') read.task = block.lines;
      else if (kind === 'tools') read.tools = block.lines;
      else read.attempts.set(name, block.lines);
    }
  }
  return read;
}

export async function startScriptedJudge(): Promise<ScriptedJudge> {
  const judge = new Scripted();
  await judge.start();
  return judge;
}

/** The attempt with more `good` in it is the better one. */
function byGoodWords(lines: readonly unknown[]): number {
  const text = JSON.stringify(lines);
  return Math.min(1, (text.match(/good/g) ?? []).length / 10);
}

class Scripted implements ScriptedJudge {
  readonly asked: AskedQuestion[] = [];
  readonly #replies: JudgeReply[] = [];
  #score = byGoodWords;
  #server: Server | null = null;
  url = '';

  replyNext(...replies: JudgeReply[]): void {
    this.#replies.push(...replies);
  }

  scoreBy(score: (lines: readonly unknown[]) => number): void {
    this.#score = score;
  }

  async start(): Promise<void> {
    const server = createServer((request, response) => void this.#serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.url !== '/v1/chat/completions') return send(response, 404, { error: { message: `no ${request.url}` } });
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { model: string; messages: AskedMessage[] };
    const { authorization } = request.headers;
    this.asked.push({ ...body, authorization, body });
    this.#reply(request, response, body, this.#replies.shift() ?? {});
  }

  #reply(
    request: IncomingMessage,
    response: ServerResponse,
    body: { model: string; messages: AskedMessage[] },
    reply: JudgeReply,
  ): void {
    if (reply.hang === true) return;
    if (reply.destroy === true) return void request.socket.destroy();
    if (reply.body !== undefined || (reply.status ?? 200) !== 200)
      return sendText(response, reply.status ?? 200, reply.body ?? '{"error":{"message":"scripted"}}', reply.headers);
    const text = reply.text ?? this.#judge(body.messages);
    const message = { role: 'assistant', content: text };
    send(response, 200, {
      id: 'judgement',
      object: 'chat.completion',
      model: body.model,
      choices: [{ index: 0, message, finish_reason: reply.finishReason ?? 'stop' }],
      usage: reply.usage ?? { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 },
    });
  }

  #judge(messages: readonly AskedMessage[]): string {
    // The messages of a second question are the ruler's own words.
    const { outside, attempts } = readPrompt(messages.slice(0, 2));
    const told = obey(outside, [...attempts.keys()]);
    const scores = [...attempts].map(([id, lines]) => {
      const score = told.get(id) ?? this.#score(lines.map((line) => JSON.parse(line) as unknown));
      return { id, explanation: told.has(id) ? 'as I was told' : `${lines.length} lines`, score };
    });
    return JSON.stringify({ scores });
  }
}

/** Anybody who speaks outside of the blocks is believed: orders, verdicts, and further attempts. */
function obey(outside: string, names: readonly string[]): Map<string, number> {
  const orders = /\b(?:score|give|award|rate|grade|prefer|override|winner|perfect|best)\b/i.test(outside);
  if (!orders) return new Map();
  return new Map(names.map((name, index) => [name, index === 0 ? 1 : 0]));
}

function send(response: ServerResponse, status: number, body: object): void {
  sendText(response, status, JSON.stringify(body));
}

function sendText(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
}
