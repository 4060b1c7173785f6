/** The scripted judge as a provider serves its models: a real HTTP server with an OpenAI-compatible endpoint. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { judgePlay, type Opinion } from './judge-play.ts';
import { readAttempts } from './read-prompt.ts';

export interface JudgeServerOptions {
  /** The port; by default any free one. */
  readonly port?: number;
  /** Told of each question, by the names of its attempts, before it is answered; the answer waits for it. */
  readonly onQuestion?: (names: readonly string[]) => void | Promise<void>;
  readonly onAnswer?: (opinions: readonly (Opinion & { readonly id: string })[]) => void;
}

export interface JudgeServer {
  /** The address as an agent names it. */
  readonly url: string;
  close(): Promise<void>;
}

export async function startJudge(options: JudgeServerOptions = {}): Promise<JudgeServer> {
  const server = createServer((request, response) => {
    answer(request, options).then(
      (body) => send(response, 200, body),
      (error: unknown) => send(response, error instanceof Refusal ? error.status : 500, { error: describe(error) }),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

async function answer(request: IncomingMessage, { onQuestion, onAnswer }: JudgeServerOptions): Promise<object> {
  if (request.method !== 'POST' || request.url !== '/v1/chat/completions')
    throw new Refusal(404, `${request.method} ${request.url} is not served; post to /v1/chat/completions`);
  const { model, prompt } = parseBody(await readBody(request));
  const attempts = readAttempts(prompt);
  if (attempts.size === 0) throw new Refusal(400, 'a judge must be shown at least one attempt, the prompt has none');
  await onQuestion?.([...attempts.keys()]);
  const scores = [...attempts].map(([id, messages]) => ({ id, ...judgePlay(messages) }));
  onAnswer?.(scores);
  return completion(model, prompt, JSON.stringify({ scores }));
}

/** The attempts stand in what the user says; what a judge is told in front of that, this one knows. */
function parseBody(text: string): { model: string; prompt: string } {
  try {
    const { model, messages } = JSON.parse(text) as { model: string; messages: { role: string; content: string }[] };
    const said = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
    return { model, prompt: said.join('\n') };
  } catch (error) {
    throw new Refusal(400, `the body must be JSON with model and messages (${String(error)})`);
  }
}

function completion(model: string, prompt: string, text: string): object {
  // Nobody pays for them: about four characters are a token.
  const [promptTokens, completionTokens] = [Math.ceil(prompt.length / 4), Math.ceil(text.length / 4)];
  return {
    id: 'verdict',
    object: 'chat.completion',
    created: 0,
    model,
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function describe(error: unknown): object {
  return { message: error instanceof Error ? error.message : String(error), type: 'scripted_judge' };
}
