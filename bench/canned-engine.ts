/** A separate process that answers every request with the same bytes, which its parent sends; it reports its port. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

process.once('message', (body: string) => {
  const bytes = Buffer.from(body);
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, headers).end(bytes));
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
});
process.once('disconnect', () => process.exit());
