/** A server that speaks enough of S3 to be wrong in the ways that a real one here is not. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LenientS3 {
  url: string;
  /** The next answers, in order; afterwards everything succeeds, `If-None-Match` or not. */
  answers: number[];
  stop(): Promise<void>;
}

export async function startLenientS3(): Promise<LenientS3> {
  const objects = new Map<string, Buffer>();
  const answers: number[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const key = new URL(request.url ?? '/', 'http://host').pathname;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const status = answers.shift() ?? (request.method === 'GET' && !objects.has(key) ? 404 : 200);
    response.statusCode = status;
    if (status === 404) return response.end('<Error><Code>NoSuchKey</Code></Error>');
    if (status !== 200) return response.end(`<Error><Code>Status${status}</Code></Error>`);
    if (request.method === 'PUT') objects.set(key, Buffer.concat(chunks));
    return response.end(request.method === 'GET' ? objects.get(key) : '');
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answers,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
