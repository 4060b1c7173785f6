// Stands in for the GPU worker: answers /health on its port, ends with its leash, says which models file it was given.
// With --standby it does so when its turn comes.
import { once } from 'node:events';
import { createServer } from 'node:http';

process.stdin.resume().on('close', () => process.exit(0));
if (process.argv.includes('--standby')) {
  console.log('standing by');
  await once(process.stdin, 'data');
}

const settings = JSON.parse(process.argv[process.argv.indexOf('--settings') + 1]);
console.log(
  JSON.stringify({
    level: 'info',
    msg: 'gpu worker stands in',
    models: settings.models,
    hasKey: Boolean(process.env.TEMPER_ENGINE_KEY),
  }),
);
createServer((_request, response) => response.end('{"status":"ok"}')).listen(settings.port, settings.host);
