// Stands in for Temporal's CLI with its dev server: answers each call with an empty message, and says that it is ready by
// listening on its port. An empty message has every field's default: no namespace keeps history, no search attribute is known.
import { createServer } from 'node:http2';

const flag = (name) => process.argv[process.argv.indexOf(name) + 1];
const EMPTY_MESSAGE = Buffer.alloc(5);

createServer()
  .on('stream', (stream) => {
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.end(EMPTY_MESSAGE);
  })
  .listen(Number(flag('--port')), flag('--ip'));
