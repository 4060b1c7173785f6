/** `npm run bench -- call`: what a model call costs each side in processor time, the forward pass left out. */
import { openTools } from '../test/run/tools.ts';
import { countFlag, showSpread, spread, type Bench, type Flags } from './bench.ts';
import { measureCalls } from './call-sides.ts';

const WANTED_MS = 1;

export const call: Bench = {
  name: 'call',
  summary: 'processor time of one model call on the client and on the server, without the forward pass',
  flags: { calls: '4000', rounds: '7', tokens: '40' },
  run,
};

async function run(flags: Flags): Promise<object> {
  const [calls, rounds, tokens] = [countFlag(flags, 'calls'), countFlag(flags, 'rounds'), countFlag(flags, 'tokens')];
  const { python } = await openTools();
  const { clientMs, serverMs } = await measureCalls({ python, calls, rounds, tokens });
  console.log(`CPU of one call, answers of ${tokens} tokens, 64 at once: median (min–max) of ${rounds} rounds`);
  console.log(`  client (SDK)        ${showSpread(clientMs, 3)} ms   wanted at most ${WANTED_MS}`);
  console.log(`  server (GPU worker) ${showSpread(serverMs, 3)} ms   wanted at most ${WANTED_MS}`);
  const result = { clientMs: spread(clientMs), serverMs: spread(serverMs) };
  return { calls, rounds, tokens, ...result, wantedMs: WANTED_MS };
}
