/** `npm run bench -- endtoend`: whole steps, sampling included, of a durable run beside TRL's, in the same minutes. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { question, trainingProblems } from '../examples/multiplication/problems.ts';
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
import type { Prompt } from './endtoend-agent.ts';
import { readModel, runJsonScript } from './python.ts';
import { meanSplit, printSplit, splitStep, type Split } from './split.ts';
import { LEFT_OUT, runTemper, type TemperRound } from './temper-run.ts';
import { openTrl } from './trl/environment.ts';

interface Workload {
  readonly model: string;
  readonly prompts: readonly Prompt[];
  readonly groups: number;
  readonly groupSize: number;
  /** Rows of a micro-batch of TRL's, about as many tokens as one of Temper's. */
  readonly batch: number;
  readonly steps: number;
  readonly learningRate: number;
  /** The mean reward that counts as learned; null: only seconds count. */
  readonly threshold: number | null;
}

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
/** A mean over so many steps: a single one is a matter of luck. */
const SMOOTHED = 5;
const CALLS = { calls: 1000, rounds: 3, tokens: 2 };
const AGENT = fileURLToPath(new URL('endtoend-agent.ts', import.meta.url));

const random = { model: 'random-pocket', learningRate: 1e-5, threshold: null };
const WORKLOADS: Readonly<Record<string, Workload>> = {
  short: { ...random, prompts: plain(20, 32), groups: 16, groupSize: 8, batch: 128, steps: 10 },
  shared2400: { ...random, prompts: plain(2396, 32), groups: 8, groupSize: 8, batch: 8, steps: 3 },
  threshold: {
    model: 'pocket',
    prompts: trainingProblems.map((problem) => ({
      id: problem.id,
      text: question(problem),
      maxTokens: 4,
      answer: String(problem.left * problem.right),
    })),
    groups: 16,
    groupSize: 8,
    batch: 128,
    steps: 80,
    learningRate: 1e-3,
    threshold: 0.55,
  },
};

export const endtoend: Bench = {
  name: 'endtoend',
  summary: 'seconds of whole steps of TRL over those of a durable run, until a reward too, and what durability costs',
  flags: { rounds: '5', workloads: Object.keys(WORKLOADS).join(',') },
  run,
};

/** Texts of so many bytes, each a token of the pocket model's, that differ from their first byte on. */
export function plain(bytes: number, maxTokens: number): Prompt[] {
  return Array.from({ length: 40 }, (_, index) => {
    const text = Array.from({ length: bytes }, (__, at) => String.fromCodePoint(97 + ((index * 7 + at * at) % 26)));
    return { id: `text-${index}`, text: text.join(''), maxTokens, answer: null };
  });
}

async function run(flags: Flags): Promise<object> {
  const rounds = countFlag(flags, 'rounds');
  const names = readNames('workloads', flags.workloads!, Object.keys(WORKLOADS));
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
      const workload = WORKLOADS[name]!;
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
  const { prompts: texts, groups, groupSize, learningRate, steps } = workload;
  const prompts = join(project, `${name}.json`);
  writeFileSync(prompts, JSON.stringify(texts));
  const model = await readModel(tools.python, workload.model, project);
  const ofTrl = {
    model,
    prompts,
    groups,
    'group-size': groupSize,
    batch: workload.batch,
    steps: steps + LEFT_OUT,
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
    env: { TEMPER_BENCH_PROMPTS: prompts },
    flags: { 'learning-rate-schedule': 'linear' },
  };
  const playTemper = () => runTemper(tools, project, `${name}-${round}`, batch);
  // In turns, so that a minute that grows slower does not always meet the same one.
  if (round % 2 === 0) return { trl: await playTrl(), temper: await playTemper() };
  return { temper: await playTemper(), trl: await playTrl() };
}

function ratioOf({ threshold }: Workload, { temper, trl }: Round): number {
  const trlSeconds = trl.seconds.slice(LEFT_OUT);
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

function print(name: string, { threshold }: Workload, played: readonly Round[]): void {
  const rows = {
    Temper: played.map(({ temper }) => temper),
    TRL: played.map(({ trl }) => ({ ...trl, seconds: trl.seconds.slice(LEFT_OUT) })),
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
    `  TRL's answers have ${tokens.toFixed(1)} tokens; ratio ${showSpread(played.map((round) => ratioOf(WORKLOADS[name]!, round)))}`,
  );
}
