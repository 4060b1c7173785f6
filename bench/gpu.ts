/**
 * `npm run bench -- gpu`: engine and trainer on a GPU beside the CPU's numbers; tokens per second, memory. gpu.py does
 * all of it, and says how to start it on a machine that has no Node.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { badConfig } from '../core/contract/failures.ts';
import { openTools } from '../test/run/tools.ts';
import type { Bench, Flags } from './bench.ts';
import { startScript } from './python.ts';

const SCRIPT = 'gpu.py';
const SMALL = ['yes', 'no'];

export const gpu: Bench = {
  name: 'gpu',
  summary: 'kernels, parity with the CPU, tokens/s, MFU and memory of engine and trainer on a GPU, in Python alone',
  flags: { device: 'cuda', parts: 'all', seconds: '360', small: 'no' },
  run,
};

async function run({ device, parts, seconds, small }: Flags): Promise<object> {
  if (!SMALL.includes(small!)) throw badConfig(`--small must be yes or no, got ${small!}`);
  const { python } = await openTools();
  const chosen = parts === 'all' ? [] : ['--parts', parts!];
  const args = ['--device', device!, '--seconds', seconds!, ...chosen, ...(small === 'yes' ? ['--small'] : [])];
  const child = startScript(python, SCRIPT, args);
  let last = '';
  let complaints = '';
  child.stderr?.on('data', (text: Buffer) => (complaints = (complaints + String(text)).slice(-3000)));
  const closed = once(child, 'close') as Promise<[number | null]>;
  // A part takes minutes: each row is shown as it comes. The last line is one JSON object.
  for await (const line of createInterface({ input: child.stdout! })) {
    if (last !== '') console.log(last);
    last = line;
  }
  const [code] = await closed;
  if (code !== 0) throw new Error(`bench/${SCRIPT} ${args.join(' ')} ended with ${code}:\n${complaints}`);
  return JSON.parse(last) as object;
}
