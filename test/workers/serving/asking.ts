import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';

export interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  error: { message?: string; code?: string; type?: string };
  body: string;
}

/** On a connection of its own. */
export async function askAt(
  port: number,
  path: string,
  headers: Record<string, string> = {},
  body: string | Buffer | null = null,
): Promise<Answer> {
  const asking = request({ port, path, method: body === null ? 'GET' : 'POST', headers, agent: false });
  asking.end(body ?? undefined);
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  const text = Buffer.concat((await response.toArray()) as Buffer[]).toString('utf8');
  const error = (JSON.parse(text) as { error?: Answer['error'] }).error ?? {};
  return { status: response.statusCode ?? 0, headers: response.headers, error, body: text };
}
