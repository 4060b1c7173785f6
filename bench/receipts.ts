/** `npm run bench -- receipts`: how long TRL trains the receipts until a mean reward, beside runs of the example. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { badConfig } from '../core/contract/failures.ts';
import { question, trainingReceipts } from '../examples/receipts/receipts.ts';
import { openStore } from '../store/bytes/open-store.ts';
import { readSteps } from '../store/records/runs/run-reader.ts';
import { openTools } from '../test/run/tools.ts';
import { projectFolders } from '../workers/project/folders.ts';
import { countFlag, mean, type Bench, type Flags } from './bench.ts';
import { runJsonScript } from './python.ts';
import { openTrl } from './trl/environment.ts';

interface Learned {
  readonly name: string;
  /** Duration of each step. */
  readonly seconds: readonly number[];
  readonly rewards: readonly number[];
}

/** Steps in each mean: single ones vary too much. */
const SMOOTHED = 5;
/** Flags of the example's README. */
const LIKE_THE_EXAMPLE = { groups: 8, 'group-size': 8, steps: 40, 'learning-rate': 4e-4 };
const MAX_TOKENS = 40;
/** Rows of a micro-batch. */
const BATCH = 16;

export const receipts: Bench = {
  name: 'receipts',
  summary:
    'steps and seconds until a mean reward in examples/receipts: runs of --project (named by --runs), and TRL for --minutes on the same --model',
  flags: { model: '', project: '.', runs: 'receipts', minutes: '12', threshold: '0.6', threads: '2' },
  run,
};

async function run(flags: Flags): Promise<object> {
  const threshold = Number(flags['threshold']);
  if (flags['model'] === '') throw badConfig('--model must be the folder of the base model that the runs trained');
  const temper = await readRuns(flags['project']!, flags['runs']!.split(','));
  const trl = await playTrl(flags['model']!, countFlag(flags, 'minutes'), countFlag(flags, 'threads'));
  const found = [...temper, trl].map((learned) => ({ ...learned, until: findUntil(learned, threshold) }));
  for (const { name, seconds, rewards, until } of found) {
    const reached =
      until === null ? 'not reached' : `after ${until.steps} steps, ${until.seconds.toFixed(0)} s of steps`;
    const last = mean(rewards.slice(-SMOOTHED)).toFixed(3);
    console.log(
      `${name.padEnd(12)} ${rewards.length} steps, ${mean(seconds).toFixed(1)} s each; reward ${rewards[0]?.toFixed(3)} → ${last}; ${threshold}: ${reached}`,
    );
  }
  return { ...flags, found };
}

async function readRuns(project: string, names: readonly string[]): Promise<Learned[]> {
  const store = await openStore(projectFolders(project).store);
  const read = async (name: string) => {
    const steps = await readSteps(store, name);
    const seconds = steps.map((step) => step.seconds['step'] ?? Number.NaN);
    return { name, seconds, rewards: steps.map(({ reward }) => reward ?? Number.NaN) };
  };
  return Promise.all(names.map(read));
}

async function playTrl(model: string, minutes: number, threads: number): Promise<Learned> {
  const { python } = await openTools();
  const folder = mkdtempSync(join(tmpdir(), 'temper-bench-receipts-'));
  try {
    const prompts = join(folder, 'receipts.json');
    const asked = trainingReceipts.map((receipt) => ({
      text: question(receipt),
      answer: String(receipt.euros),
      maxTokens: MAX_TOKENS,
      results: [],
    }));
    writeFileSync(prompts, JSON.stringify(asked));
    const options = { ...LIKE_THE_EXAMPLE, model, prompts, threads, batch: BATCH, grade: 'receipts' };
    const args = Object.entries({ ...options, 'most-seconds': 60 * minutes });
    const words = args.flatMap(([flag, value]) => [`--${flag}`, String(value)]);
    const played = await runJsonScript<Learned>(python, 'trl/run.py', words, await openTrl(python));
    return { ...played, name: 'TRL' };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function findUntil({ seconds, rewards }: Learned, threshold: number): { steps: number; seconds: number } | null {
  for (let steps = SMOOTHED; steps <= rewards.length; steps++) {
    if (mean(rewards.slice(steps - SMOOTHED, steps)) < threshold) continue;
    return { steps, seconds: seconds.slice(0, steps).reduce((sum, each) => sum + each, 0) };
  }
  return null;
}
