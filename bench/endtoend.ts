/** `npm run bench -- endtoend`: whole steps, sampling included, of a durable run beside TRL's, in the same minutes. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { badConfig } from '../core/contract/failures.ts';
import { openTools, type Tools } from '../test/run/tools.ts';
import {
  countFlag,
  mean,
  median,
  readNames,
  showSpread,
  spread,
  type Bench,
  type Flags,
  type Spread,
} from './bench.ts';
import { measureCalls } from './call-sides.ts';
import { WORKLOADS, type Workload } from './endtoend-workloads.ts';
import { readModel, runJsonScript } from './python.ts';
import { meanSplit, printSplit, splitStep, type Split } from './split.ts';
import { runTemper, type TemperRound } from './temper-run.ts';
import { openTrl } from './trl/environment.ts';

/** See trl/run.py. */
interface TrlRound {
  seconds: number[];
  rewards: number[];
  tokens: number[];
}

interface Round {
  readonly temper: TemperRound;
  readonly trl: TrlRound;
}

const THREADS = 2;
/** Steps in each mean: single ones vary too much. */
const SMOOTHED = 5;
const ALL = 'all';
const CALLS = { calls: 1000, rounds: 3, tokens: 2 };
const AGENT = fileURLToPath(new URL('endtoend-agent.ts', import.meta.url));

export const endtoend: Bench = {
  name: 'endtoend',
  summary: 'seconds of whole steps of TRL over those of a durable run, until a reward too, and what durability costs',
  flags: { model: 'pocket', rounds: '5', workloads: ALL },
  run,
};

async function run(flags: Flags): Promise<object> {
  const rounds = countFlag(flags, 'rounds');
  const workloads = WORKLOADS[flags.model!];
  if (workloads === undefined)
    throw badConfig(`--model must be one of ${Object.keys(WORKLOADS).join(', ')}, got ${flags.model}`);
  const known = Object.keys(workloads);
  const names = flags.workloads === ALL ? known : readNames('workloads', flags.workloads!, known);
  const tools = await openTools();
  const project = mkdtempSync(join(tmpdir(), 'temper-bench-endtoend-'));
  mkdirSync(join(project, '.temper'));
  try {
    const trl = await openTrl(tools.python);
    const costs = await measureCalls({ python: tools.python, ...CALLS });
    const callS = (median(costs.clientMs) + median(costs.serverMs)) / 1000;
    const ratios: Record<string, { trl: Spread }> = {};
    const split: Record<string, Split> = {};
    for (const name of names) {
      const workload = workloads[name]!;
      const played: Round[] = [];
      for (let round = 1; round <= rounds; round++)
        played.push(await playRound({ tools, project, trl, name, workload, round }));
      ratios[name] = { trl: spread(played.map((of) => ratioOf(workload, of))) };
      split[name] = meanSplit(played.map(({ temper }) => splitStep(temper.times, temper.engine, callS)));
      print(name, workload, played);
      printSplit(split[name]);
    }
    return { ...flags, ratios, split };
  } finally {
    rmSync(project, { recursive: true });
  }
}

interface Place {
  readonly tools: Tools;
  readonly project: string;
  /** The environment of TRL's scripts. */
  readonly trl: Readonly<Record<string, string>>;
  readonly name: string;
  readonly workload: Workload;
  readonly round: number;
}

async function playRound({ tools, project, trl, name, workload, round }: Place): Promise<Round> {
  const { prompts: texts, groups, groupSize, learningRate, steps, leftOut } = workload;
  const prompts = join(project, `${name}.json`);
  writeFileSync(prompts, JSON.stringify(texts));
  const model = await readModel(tools.python, workload.model, project);
  const ofTrl = {
    model,
    prompts,
    groups,
    'group-size': groupSize,
    batch: workload.batch,
    steps: steps + leftOut,
    'learning-rate': learningRate,
    threads: THREADS,
  };
  const args = Object.entries(ofTrl).flatMap(([flag, value]) => [`--${flag}`, `${value}`]);
  const playTrl = () => runJsonScript<TrlRound>(tools.python, 'trl/run.py', args, trl);
  const batch = {
    agent: AGENT,
    baseModel: workload.model === 'pocket' ? 'pocket' : model,
    groups,
    groupSize,
    learningRate,
    steps,
    leftOut,
    env: { TEMPER_BENCH_PROMPTS: prompts },
    flags: { 'learning-rate-schedule': 'linear' },
  };
  const playTemper = () => runTemper(tools, project, `${name}-${round}`, batch);
  // In turns, so that a minute that grows slower does not always meet the same one.
  if (round % 2 === 0) return { trl: await playTrl(), temper: await playTemper() };
  return { temper: await playTemper(), trl: await playTrl() };
}

function ratioOf({ threshold, leftOut }: Workload, { temper, trl }: Round): number {
  const trlSeconds = trl.seconds.slice(leftOut);
  if (threshold === null) return median(trlSeconds) / median(temper.seconds);
  return (
    (stepsUntil(threshold, trl.rewards) * mean(trlSeconds)) /
    (stepsUntil(threshold, temper.rewards) * mean(temper.seconds))
  );
}

/** Never reached: all of them, and no number. */
function stepsUntil(threshold: number, rewards: readonly number[]): number {
  for (let end = SMOOTHED; end <= rewards.length; end++) {
    if (mean(rewards.slice(end - SMOOTHED, end)) >= threshold) return end;
  }
  return Number.NaN;
}

function print(name: string, workload: Workload, played: readonly Round[]): void {
  const { threshold, leftOut } = workload;
  const rows = {
    Temper: played.map(({ temper }) => temper),
    TRL: played.map(({ trl }) => ({ ...trl, seconds: trl.seconds.slice(leftOut) })),
  };
  console.log(`\n${name}: median (min–max) of ${played.length} rounds`);
  for (const [peer, found] of Object.entries(rows)) {
    const seconds = showSpread(
      found.map((round) => median(round.seconds)),
      3,
    );
    const until =
      threshold === null
        ? ''
        : `   reward ${threshold} after ${showSpread(
            found.map(({ rewards }) => stepsUntil(threshold, rewards)),
            0,
          )} steps`;
    console.log(`  ${peer.padEnd(6)} ${seconds} s a step${until}`);
  }
  const tokens = mean(played.flatMap(({ trl }) => trl.tokens));
  console.log(
    `  TRL's answers have ${tokens.toFixed(1)} tokens; ratio ${showSpread(played.map((round) => ratioOf(workload, round)))}`,
  );
}
