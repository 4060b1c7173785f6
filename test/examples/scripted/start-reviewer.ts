/** `node --import temper-rl/typescript test/examples/scripted/start-reviewer.ts RUN`: starts the scripted reviewer; Ctrl-C ends it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ScriptedReviewer } from './reviewer.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8019' },
    name: { type: 'string', default: 'script' },
    pairs: { type: 'boolean', default: false },
    'delay-ms': { type: 'string', default: '500' },
    mistakes: { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
  },
});
const [run] = positionals;
const key = process.env['TEMPER_REVIEW_KEY'];
if (run === undefined || key === undefined)
  throw new Error('usage: TEMPER_REVIEW_KEY=… node --import temper-rl/typescript start-reviewer.ts RUN');

const { url, name, pairs, seed } = values;
const [delayMs, mistakes] = [Number(values['delay-ms']), Number(values.mistakes)];
const reviewer = new ScriptedReviewer({ url, key, run, name, pairs, seed, delayMs, mistakes });
const ROUND_MS = 200;
const AWAY_MS = 3000;
let said = '';
for (;;) {
  try {
    const given = await reviewer.round(Date.now());
    if (given > 0) console.log(`${new Date().toISOString()} ${name} gave ${given} answers`);
    await sleep(ROUND_MS);
  } catch (error) {
    // The server may be away, and the run may not have begun.
    if (String(error) !== said) console.log(`waiting: ${(said = String(error))}`);
    await sleep(AWAY_MS);
  }
}
