/** A hosted model as a provider serves it: writes scenarios, tries them, and says what came of it, by a script. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface AuthorMessage {
  readonly role: string;
  readonly content: string;
  readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: string } }[];
}

export interface AuthorRequest {
  readonly model: string;
  readonly messages: readonly AuthorMessage[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly response_format?: { readonly json_schema: { readonly name: string } };
}

interface Answer {
  readonly content?: string;
  /** Name and arguments of a tool call. */
  readonly call?: readonly [string, object];
  readonly status?: number;
}

export interface AuthorScript {
  /** The proposed tasks of a round, with their difficulties. */
  readonly propose: (asked: { round: number; count: number; user: string }) => readonly (readonly [string, number])[];
  /** One turn of an attempt. */
  readonly play?: (request: AuthorRequest) => Answer;
  /** Text of an answer in place of the JSON that was asked for; null: the JSON. */
  readonly garble?: (asked: AuthorRequest, kind: string) => Answer | null;
  /** Whether the quoted attempt solved the task; by default each did. */
  readonly judge?: (user: string) => boolean;
}

export interface ScriptedAuthor {
  readonly url: string;
  /** Kinds of the calls that were answered, in order. */
  readonly answered: string[];
  /** Bodies that were answered, in order. */
  readonly bodies: string[];
  /** Told of each call before it is answered; false leaves it without an answer. */
  onCall: () => boolean;
  close(): Promise<void>;
}

export const PROMPT_TOKENS = 1000;
export const COMPLETION_TOKENS = 100;

export async function startAuthor(script: AuthorScript): Promise<ScriptedAuthor> {
  let rounds = 0;
  const author = { answered: [] as string[], bodies: [] as string[], onCall: () => true };
  const server = createServer((request, response) => void serve(request, response));
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    if (!author.onCall()) return;
    const asked = JSON.parse(text) as AuthorRequest;
    const kind = asked.response_format?.json_schema.name ?? 'attempt';
    author.answered.push(kind);
    author.bodies.push(text);
    if (kind === 'scenarios') rounds += 1;
    reply(response, asked, script.garble?.(asked, kind) ?? answerOf(script, asked, kind, rounds));
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(author, {
    url: `http://127.0.0.1:${port}/v1`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

function answerOf(script: AuthorScript, asked: AuthorRequest, kind: string, round: number): Answer {
  const user = asked.messages.findLast(({ role }) => role === 'user')?.content ?? '';
  switch (kind) {
    case 'scenarios': {
      const count = Number(/\{"count":(\d+)\}/.exec(user)?.[1]);
      const scenarios = script.propose({ round, count, user }).map(([task, difficulty]) => ({ task, difficulty }));
      return { content: JSON.stringify({ scenarios }) };
    }
    case 'verdict': {
      const solved = script.judge?.(user) ?? true;
      return { content: JSON.stringify({ explanation: solved ? 'it was done' : 'it was not done', solved }) };
    }
    default:
      return script.play?.(asked) ?? { content: `the answer to ${user}` };
  }
}

function reply(response: ServerResponse, { model }: AuthorRequest, { content, call, status = 200 }: Answer): void {
  response.statusCode = status;
  response.setHeader('content-type', 'application/json');
  if (status !== 200) {
    response.end(JSON.stringify({ error: { message: content } }));
    return;
  }
  const tool_calls = call && [
    { id: 'call-1', type: 'function', function: { name: call[0], arguments: JSON.stringify(call[1]) } },
  ];
  const message = { role: 'assistant', content: content ?? null, ...(tool_calls && { tool_calls }) };
  const choices = [{ index: 0, message, finish_reason: call === undefined ? 'stop' : 'tool_calls' }];
  const usage = { prompt_tokens: PROMPT_TOKENS, completion_tokens: COMPLETION_TOKENS };
  response.end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 0, model, choices, usage }));
}
