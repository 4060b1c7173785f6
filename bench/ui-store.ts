/**
 * Makes a store for `temper ui`'s tests and bench: `node --import ./workers/typescript.js bench/ui-store.ts --folder DIR`.
 * The defaults make 2,000 steps with 10,000 attempts of 20 turns, about 1 GB.
 */
import { parseArgs } from 'node:util';
import { BUGS } from './ui/made-attempts.ts';
import { writeUiStore } from './ui/write-store.ts';
import { DEFAULTS } from './ui/writing.ts';
import { RUN_STATES } from '../core/contract/contract.ts';

const FLAGS = {
  folder: '',
  run: DEFAULTS.run,
  steps: String(DEFAULTS.steps),
  groups: String(DEFAULTS.groups),
  'attempts-per-step': '',
  attempts: String(DEFAULTS.attempts),
  turns: String(DEFAULTS.turns),
  words: String(DEFAULTS.words),
  'blob-bytes': String(DEFAULTS.blobBytes),
  'eval-every': String(DEFAULTS.evalEvery),
  bug: 'none',
  state: 'completed',
} as const;

async function main(): Promise<void> {
  const options = Object.fromEntries(Object.keys(FLAGS).map((name) => [name, { type: 'string' as const }]));
  const { values } = parseArgs({ options, strict: true });
  const flags: Record<keyof typeof FLAGS, string> = { ...FLAGS, ...values };
  const bug = BUGS.find((known) => known === flags.bug);
  const state = RUN_STATES.find((known) => known === flags.state);
  if (flags.folder === '' || bug === undefined || state === undefined)
    throw new Error(
      `--folder must name a folder, --bug one of ${BUGS.join(', ')}, --state one of ${RUN_STATES.join(', ')}; pass such values`,
    );
  const groups = Number(flags.groups);
  const startedAt = performance.now();
  await writeUiStore({
    folder: flags.folder,
    run: flags.run,
    steps: Number(flags.steps),
    groups,
    attempts: flags['attempts-per-step'] === '' ? Number(flags.attempts) : Number(flags['attempts-per-step']) / groups,
    turns: Number(flags.turns),
    words: Number(flags.words),
    blobBytes: Number(flags['blob-bytes']),
    evalEvery: Number(flags['eval-every']),
    bug,
    state,
    onStep: (step) => {
      if (step % 100 === 0) console.log(`step ${step}`);
    },
  });
  console.log(JSON.stringify({ folder: flags.folder, seconds: (performance.now() - startedAt) / 1000 }));
}

await main();
