/** MCP over streamable HTTP, by hand, so that it can misbehave: `behave` answers a tool's call itself, or says what to send. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

interface Asked {
  readonly id?: number;
  readonly method: string;
  readonly params: Record<string, unknown>;
}

export interface HttpServer {
  readonly url: string;
  /** Method and path of every request, and its JSON-RPC method. */
  readonly asked: string[];
}

type Behave = (request: IncomingMessage, response: ServerResponse, asked: Asked) => object | null;

export async function startHttpServer(behave: Behave): Promise<HttpServer> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      const message = (body === '' ? { method: '', params: {} } : JSON.parse(body)) as Asked;
      asked.push(`${request.method} ${request.url} ${message.method}`.trim());
      const result = behave(request, response, message);
      if (result === null) return;
      const { id } = message;
      response.setHeader('content-type', 'application/json').setHeader('mcp-session-id', 'one');
      if (id === undefined) response.writeHead(202).end();
      else response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    })();
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, asked };
}

/** Answers of a healthy server. */
export function answer({ method, params }: Asked): object {
  const { protocolVersion } = params ?? {};
  if (method === 'initialize')
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'http', version: '1' } };
  if (method === 'tools/list') return { tools: [{ name: 'look', inputSchema: { type: 'object' } }] };
  return method === 'tools/call' ? { content: [{ type: 'text', text: 'seen' }] } : {};
}
