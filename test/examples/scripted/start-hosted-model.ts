/**
 * The scripted model in a terminal; prints a line for each answer. It is started with the file of a script:
 * `node --import temper-rl/typescript test/examples/scripted/start-hosted-model.ts test/examples/scripted/sums.ts`.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { startScriptedModel, type Script } from './hosted-model.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: { type: 'string', default: '4712' } },
});
const [file = 'test/examples/scripted/sums.ts'] = positionals;
const { SCRIPT } = (await import(pathToFileURL(resolve(file)).href)) as { SCRIPT: Script };

const counts = new Map<string, number>();
const { url } = await startScriptedModel(SCRIPT, Number(values.port), (kind) => {
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
  console.log(`answered: ${[...counts].map(([name, count]) => `${count} ${name}`).join(', ')}`);
});
console.log(`the scripted model answers at ${url}; Ctrl-C ends it`);
