/** A scripted model as a provider serves its own: a real HTTP server with an OpenAI-compatible endpoint. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ChatMessage {
  readonly role: string;
  readonly content: string | null;
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  /** The form that the answer must have; absent for plain text. */
  readonly response_format?: { readonly json_schema?: { readonly name: string } };
}

/** A text, or a call of a tool. */
export type ChatAnswer = string | ToolCall;

export interface ToolCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface ChatServer {
  /** The address as an agent names it. */
  readonly url: string;
  close(): Promise<void>;
}

/** The request gets this status and message instead of an answer. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Serves at `port` of this machine, or at any free one. */
export async function startChatServer(
  port: number,
  answer: (request: ChatRequest) => ChatAnswer | Promise<ChatAnswer>,
): Promise<ChatServer> {
  const server = createServer((request, response) => {
    readRequest(request)
      .then(async (asked) => completion(asked, await answer(asked)))
      .then(
        (body) => send(response, 200, body),
        (error: unknown) => send(response, error instanceof Refusal ? error.status : 500, { error: describe(error) }),
      );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readRequest(request: IncomingMessage): Promise<ChatRequest> {
  if (request.method !== 'POST' || request.url !== '/v1/chat/completions')
    throw new Refusal(404, `${request.method} ${request.url} is not served; post to /v1/chat/completions`);
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return parseRequest(Buffer.concat(chunks).toString('utf8'));
}

function parseRequest(text: string): ChatRequest {
  try {
    const body = JSON.parse(text) as ChatRequest;
    if (!Array.isArray(body.messages)) throw new Error('no messages');
    return body;
  } catch (error) {
    throw new Refusal(400, `the body must be JSON with model and messages (${String(error)})`);
  }
}

function completion({ model, messages }: ChatRequest, answer: ChatAnswer): object {
  const message = { role: 'assistant', ...inForm(answer) };
  // Nobody pays for them: about four characters are a token.
  const [promptTokens, completionTokens] = [messages, message].map((said) =>
    Math.ceil(JSON.stringify(said).length / 4),
  );
  return {
    id: 'answer',
    object: 'chat.completion',
    created: 0,
    model,
    choices: [{ index: 0, message, finish_reason: typeof answer === 'string' ? 'stop' : 'tool_calls' }],
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens! + completionTokens!,
    },
  };
}

function inForm(answer: ChatAnswer): object {
  if (typeof answer === 'string') return { content: answer };
  const called = { name: answer.name, arguments: JSON.stringify(answer.arguments) };
  return { content: null, tool_calls: [{ id: `call_${called.name}`, type: 'function', function: called }] };
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function describe(error: unknown): object {
  return { message: error instanceof Error ? error.message : String(error), type: 'scripted_model' };
}
