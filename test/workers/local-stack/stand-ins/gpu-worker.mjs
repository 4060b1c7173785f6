// Stands in for the GPU worker: answers /health on its port, ends with its leash, says which models file it was given.
// With --standby it does so when its turn comes.
import { once } from 'node:events';
import { createServer } from 'node:http';

process.stdin.resume().on('close', () => process.exit(0));
if (process.argv.includes('--standby')) {
  console.log('standing by');
  await once(process.stdin, 'data');
}

const flag = (name) => process.argv[process.argv.indexOf(name) + 1];
console.log(
  JSON.stringify({
    level: 'info',
    msg: 'gpu worker stands in',
    models: flag('--models'),
    hasKey: Boolean(process.env.TEMPER_ENGINE_KEY),
  }),
);
createServer((_request, response) => response.end('{"status":"ok"}')).listen(Number(flag('--port')), '127.0.0.1');
