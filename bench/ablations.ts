/** `npm run bench -- ablations`: what each option of training does to what tic-tac-toe learns, over several seeds. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { openStore } from '../store/bytes/open-store.ts';
import { readRun } from '../store/records/runs/run-reader.ts';
import { openTools, type Tools } from '../test/run/tools.ts';
import { projectFolders } from '../workers/project/folders.ts';
import { countFlag, mean, readNames, showSpread, spread, type Bench, type Flags, type Spread } from './bench.ts';
import { trainWith } from './temper-run.ts';

/** Results of one run. */
interface Learned {
  /** Share of the held-out games that are won after training. */
  readonly heldOut: number;
  /** Mean reward over all steps: how fast it was learned. */
  readonly training: number;
}

const AGENT = fileURLToPath(new URL('../examples/tic-tac-toe/agent.ts', import.meta.url));

/** The demo (`npm start`) but for its number of steps, with one update a step. */
const DEMO = {
  'base-model': 'pocket',
  'groups-per-step': '8',
  'group-size': '16',
  'learning-rate': '4e-3',
  'learning-rate-schedule': 'linear',
  'replacement-rounds': '0',
};

/** Flags that each ablation of the demo sets. Losses differ in the second update of a step only. */
const ABLATIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  demo: {},
  rows: { packing: 'rows' },
  'passes-2': { passes: '2' },
  'passes-4': { passes: '4' },
  ppo: { passes: '2', loss: 'ppo' },
  gspo: { passes: '2', loss: 'gspo' },
  dppo: { passes: '2', loss: 'dppo' },
  sapo: { passes: '2', loss: 'sapo' },
  'importance-sampling': { passes: '2', loss: 'importance_sampling' },
  'group-std': { 'advantage-scale': 'group-std' },
  'batch-std': { 'advantage-scale': 'batch-std' },
  'by-attempt': { reduction: 'attempt' },
  'staleness-1': { 'max-staleness': '1' },
  'staleness-2': { 'max-staleness': '2' },
  'kl-0.01': { 'kl-coefficient': '0.01' },
};

export const ablations: Bench = {
  name: 'ablations',
  summary: 'held-out wins of tic-tac-toe after so many steps, by option and over seeds; a project keeps complete runs',
  flags: { seeds: '3', steps: '60', ablations: Object.keys(ABLATIONS).join(','), project: '' },
  run,
};

async function run(flags: Flags): Promise<object> {
  const [seeds, steps] = [countFlag(flags, 'seeds'), countFlag(flags, 'steps')];
  const names = readNames('ablations', flags['ablations']!, Object.keys(ABLATIONS));
  const tools = await openTools();
  const isKept = flags['project'] !== '';
  const project = isKept ? resolve(flags['project']!) : mkdtempSync(join(tmpdir(), 'temper-bench-ablations-'));
  mkdirSync(join(project, '.temper'), { recursive: true });
  const learned = new Map<string, Learned[]>(names.map((name) => [name, []]));
  try {
    // Seed by seed: a bench that is ended early has something of every ablation.
    for (let seed = 1; seed <= seeds; seed++)
      for (const name of names) learned.get(name)!.push(await learn({ tools, project, name, steps, seed }));
  } finally {
    if (!isKept) rmSync(project, { recursive: true });
  }
  return {
    ...flags,
    project: undefined,
    results: Object.fromEntries([...learned].map(([name, of]) => print(name, of))),
  };
}

interface Play {
  readonly tools: Tools;
  readonly project: string;
  readonly name: string;
  readonly steps: number;
  readonly seed: number;
}

async function learn({ tools, project, name, steps, seed }: Play): Promise<Learned> {
  const played = `${name.replace('.', '-')}-${steps}-${seed}`;
  await trainWith(tools, project, AGENT, { run: played, seed, steps, ...DEMO, ...ABLATIONS[name] });
  const stored = await readRun(await openStore(projectFolders(project).store), played);
  const heldOut = stored?.state?.evalAfter?.metrics['winRate'];
  if (stored === null || heldOut === undefined) throw new Error(`${played} must be evaluated after its training`);
  const training = mean(stored.steps.map(({ reward }) => reward ?? 0));
  console.log(`${played}: ${heldOut.toFixed(3)} win held out, mean training reward ${training.toFixed(3)}`);
  return { heldOut, training };
}

function print(name: string, learned: readonly Learned[]): [string, Record<keyof Learned, Spread>] {
  const [heldOut, training] = [learned.map((of) => of.heldOut), learned.map((of) => of.training)];
  console.log(`${name.padEnd(20)} held out ${showSpread(heldOut, 3)}  training ${showSpread(training, 3)}`);
  return [name, { heldOut: spread(heldOut), training: spread(training) }];
}
