/** A server that streams chat completions as OpenAI's does, or refuses, as a test says. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface StreamedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface StreamingServer {
  /** Ends in `/v1`. */
  readonly url: string;
  readonly asked: StreamedRequest[];
  /** How many clients went away before their answer ended. */
  left: number;
}

export type Answer = (response: ServerResponse, asked: StreamedRequest, number: number) => void;

export const chunk = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

export const words =
  (...texts: readonly string[]): Answer =>
  (response) => {
    for (const content of texts) response.write(chunk({ choices: [{ index: 0, delta: { content } }] }));
    response.write(chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }));
    response.write(chunk({ choices: [], usage: { prompt_tokens: 3, completion_tokens: texts.length } }));
    response.end('data: [DONE]\n\n');
  };

export async function startStreamingServer(answer: Answer): Promise<StreamingServer> {
  const found: StreamingServer = { url: '', asked: [], left: 0 };
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      const asked = { headers: request.headers, body: JSON.parse(text) as Record<string, unknown> };
      found.asked.push(asked);
      answer(response, asked, found.asked.length);
    });
    response.on('close', () => {
      if (!response.writableFinished) found.left += 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(found, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` });
}
