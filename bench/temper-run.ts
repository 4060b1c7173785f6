/** One run of Temper as a person starts it, in a project of its own, and what its steps took. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { manifestKey } from '../store/layout.ts';
import { openStore } from '../store/bytes/open-store.ts';
import { readSteps } from '../store/records/runs/run-reader.ts';
import type { Tools } from '../test/run/tools.ts';
import { projectFolders } from '../workers/project/folders.ts';
import { readStackFile } from '../workers/local-stack/protocol/stack-file.ts';
import { mean } from './bench.ts';
import { EngineMeter } from './engine-meter.ts';
import { readCommittedAt, readStepTimes, type EngineShare, type StepTimes } from './split.ts';

export interface Batch {
  agent: string;
  baseModel: string;
  groups: number;
  groupSize: number;
  learningRate: number;
  /** Those that are counted. */
  steps: number;
  /** And how many before them; see `LEFT_OUT`. */
  leftOut?: number;
  /** Environment of the command and its agent. */
  env?: Readonly<Record<string, string>>;
  /** Port of an engine that the local stack does not start. */
  enginePort?: number;
  /** More flags of `temper train`, or others than the bench's. */
  flags?: Readonly<Record<string, string>>;
}

export interface TemperRound {
  /** Seconds of every step that counts. */
  seconds: number[];
  /** From commit to commit, on average: less than the steps' own seconds where they overlap. */
  wallS: number;
  /** Mean reward of every step, those before included. */
  rewards: number[];
  /** The mean step. */
  times: StepTimes;
  engine: EngineShare;
}

/** The first steps warm caches and just-in-time compilers. */
export const LEFT_OUT = 2;
/** The trainer asks the engine for one token after each commit. */
const PROBES_A_STEP = 1;
const TEMPER = fileURLToPath(new URL('../cli/temper.js', import.meta.url));

export async function runTemper(tools: Tools, project: string, run: string, batch: Batch): Promise<TemperRound> {
  const { stackFile } = projectFolders(project);
  const meter = new EngineMeter(() => batch.enginePort ?? readStackFile(stackFile)?.ports?.engine);
  try {
    await trainWith(tools, project, batch.agent, flagsOf(run, batch), batch.env);
  } finally {
    meter.close();
  }
  return readRound(project, run, batch, meter);
}

/** `temper train` in its own process; what it printed is part of the error if it fails. */
export async function trainWith(
  tools: Tools,
  project: string,
  agent: string,
  flags: Readonly<Record<string, string | number>> & { run: string },
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const log = join(project, `${flags.run}.log`);
  const file = openSync(log, 'w');
  const given = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(process.execPath, [TEMPER, 'train', agent, ...given], {
    cwd: project,
    stdio: ['ignore', file, file],
    env: { ...process.env, ...env, TEMPER_PYTHON: tools.python, TEMPER_TEMPORAL_CLI: tools.temporalCli },
  });
  closeSync(file);
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`temper train ended with ${code}:\n${readFileSync(log, 'utf8').slice(-3000)}`);
}

function flagsOf(
  run: string,
  { baseModel, flags, leftOut = LEFT_OUT, ...batch }: Batch,
): Record<string, string | number> & { run: string } {
  return {
    run,
    'base-model': baseModel,
    steps: batch.steps + leftOut,
    'groups-per-step': batch.groups,
    'group-size': batch.groupSize,
    'learning-rate': batch.learningRate,
    'replacement-rounds': 0,
    'eval-scenarios': 1,
    // The bare loop trains every game; a random model ends few turns by itself.
    truncated: 'keep',
    ...flags,
  };
}

async function readRound(project: string, run: string, batch: Batch, meter: EngineMeter): Promise<TemperRound> {
  const { leftOut = LEFT_OUT } = batch;
  const root = projectFolders(project).store;
  const store = await openStore(root);
  const steps = await readSteps(store, run);
  const counted = steps.filter(({ step }) => step > leftOut);
  if (counted.length !== batch.steps)
    throw new Error(`${run} must have ${batch.steps} steps, it has ${counted.length}`);
  const times = await Promise.all(
    counted.map((step) => readStepTimes(store, root, { run, branch: 0, step: step.step }, step, batch.groups)),
  );
  const committedAt = (step: number) => readCommittedAt(store, manifestKey({ run, branch: 0, step }));
  const [from, until] = [await committedAt(leftOut), await committedAt(leftOut + batch.steps)];
  const work = meter.between(from, until);
  const engine = { forwardS: work.forwardS / batch.steps, calls: work.requests / batch.steps - PROBES_A_STEP };
  const rewards = steps.map(({ reward }) => reward ?? Number.NaN);
  const wallS = (until - from) / 1000 / batch.steps;
  return { seconds: times.map(({ step }) => step), wallS, rewards, times: meanTimes(times), engine };
}

function meanTimes(times: readonly StepTimes[]): StepTimes {
  const names = Object.keys(times[0] ?? {}) as (keyof StepTimes)[];
  return Object.fromEntries(names.map((name) => [name, mean(times.map((time) => time[name]))])) as unknown as StepTimes;
}
