/** One request to a server of this machine, on a connection of its own. */
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly bytes: Buffer;
  readonly text: string;
}

export async function askAt(port: number, { body, ...sent }: Sent): Promise<Answer> {
  const asking = request({ host: '127.0.0.1', port, agent: false, ...sent });
  asking.end(body ?? undefined);
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  const bytes = Buffer.concat((await response.toArray()) as Buffer[]);
  return { status: response.statusCode ?? 0, headers: response.headers, bytes, text: bytes.toString('utf8') };
}
