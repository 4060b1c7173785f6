/** `npm run bench -- step`: a step of Temper beside the same step in a bare single-process loop, in the same minutes. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { badConfig } from '../core/contract/failures.ts';
import { openTools, type Tools } from '../test/run/tools.ts';
import { countFlag, mean, median, showSpread, spread, type Bench, type Flags, type Spread } from './bench.ts';
import { measureCalls } from './call-sides.ts';
import { readModel, runJsonScript } from './python.ts';
import { meanSplit, printSplit, splitStep, type Split } from './split.ts';
import { runTemper, type Batch, type TemperRound } from './temper-run.ts';

interface Model {
  readonly agent: string;
  readonly forgiving: boolean;
  readonly wanted: number;
  /** Makes it where it is not, and returns its folder. */
  folder(tools: Tools, project: string): Promise<string>;
}

/** Seconds by part, one value for each step or round. */
interface Seconds {
  generate: number[];
  update: number[];
}

interface BareRound {
  seconds: Seconds;
  moves: number[];
}

const MODELS: Readonly<Record<string, Model>> = {
  pocket: {
    agent: repositoryFile('examples/tic-tac-toe/agent.ts'),
    forgiving: false,
    wanted: 8,
    folder: ({ python }, project) => readModel(python, 'pocket', project),
  },
  'random-50m': {
    agent: repositoryFile('bench/forgiving-agent.ts'),
    forgiving: true,
    wanted: 1.25,
    folder: ({ python }, project) => readModel(python, 'random-50m', project),
  },
};

const WANTED_PARTS = 1.5;
const THREADS = 2;
/** Every step makes another adapter, which has to be stored and loaded, and still all steps play alike. */
const LEARNING_RATE = 1e-5;
const CALLS = { calls: 1000, rounds: 3, tokens: 2 };

export const step: Bench = {
  name: 'step',
  summary: 'a whole step against a bare loop, engine and trainer against its parts, and where the time goes',
  flags: { model: 'pocket', steps: '12', rounds: '3', groups: '8', 'group-size': '16' },
  run,
};

async function run(flags: Flags): Promise<object> {
  const name = flags['model'] ?? '';
  const model = MODELS[name];
  if (model === undefined) throw badConfig(`--model must be one of ${Object.keys(MODELS).join(', ')}, got ${name}`);
  const [steps, rounds] = [countFlag(flags, 'steps'), countFlag(flags, 'rounds')];
  const [groups, groupSize] = [countFlag(flags, 'groups'), countFlag(flags, 'group-size')];
  const tools = await openTools();
  const project = mkdtempSync(join(tmpdir(), 'temper-bench-step-'));
  mkdirSync(join(project, '.temper'));
  try {
    const folder = await model.folder(tools, project);
    const baseModel = name === 'pocket' ? name : folder;
    const batch = { agent: model.agent, baseModel, groups, groupSize, learningRate: LEARNING_RATE, steps };
    const bare: BareRound[] = [];
    const temper: TemperRound[] = [];
    for (let round = 1; round <= rounds; round++) {
      bare.push(await runBare(tools, model, folder, batch));
      temper.push(await runTemper(tools, project, `round-${round}`, batch));
      console.log(`round ${round} of ${rounds}: ${describeRound(bare.at(-1)!, temper.at(-1)!)}`);
    }
    const parts = await runParts(tools, model, folder, batch, Math.max(rounds, steps));
    const costs = await measureCalls({ python: tools.python, ...CALLS });
    const callS = (median(costs.clientMs) + median(costs.serverMs)) / 1000;
    const ratios = compare(bare, temper, parts);
    const split = meanSplit(temper.map(({ times, engine }) => splitStep(times, engine, callS)));
    print({ name, model, ratios, split });
    const calls = {
      temper: mean(temper.map(({ engine }) => engine.calls)),
      bare: mean(bare.flatMap(({ moves }) => moves)),
    };
    const callMs = { client: spread(costs.clientMs), server: spread(costs.serverMs), tokens: CALLS.tokens };
    return {
      model: name,
      groups,
      groupSize,
      steps,
      rounds,
      wanted: model.wanted,
      ...spreads(ratios),
      split,
      calls,
      callMs,
    };
  } finally {
    rmSync(project, { recursive: true });
  }
}

function runBare({ python }: Tools, { forgiving }: Model, folder: string, batch: Batch): Promise<BareRound> {
  const flags = [...pythonFlags(folder, forgiving, batch), '--steps', `${batch.steps}`];
  return runJsonScript(python, 'bare_loop.py', [...flags, '--learning-rate', `${batch.learningRate}`]);
}

async function runParts({ python }: Tools, { forgiving }: Model, folder: string, batch: Batch, rounds: number) {
  const flags = [...pythonFlags(folder, forgiving, batch), '--rounds', `${rounds}`];
  return (await runJsonScript<{ seconds: { temper: Seconds; bare: Seconds } }>(python, 'parts.py', flags)).seconds;
}

function pythonFlags(folder: string, forgiving: boolean, { groups, groupSize }: Batch): string[] {
  const flags = ['--model', folder, '--groups', `${groups}`, '--group-size', `${groupSize}`, '--threads', `${THREADS}`];
  return forgiving ? [...flags, '--forgiving'] : flags;
}

interface Ratios {
  /** Whole steps, one value for each round: Temper's median step by the bare loop's. */
  step: number[];
  /** Parts, one value for each round of `parts.py`. */
  engine: number[];
  trainer: number[];
  temperStepS: number[];
  bareStepS: number[];
}

function compare(bare: BareRound[], temper: TemperRound[], parts: { temper: Seconds; bare: Seconds }): Ratios {
  const bareStepS = bare.map(({ seconds }) => median(wholeSteps(seconds)));
  const temperStepS = temper.map(({ seconds }) => median(seconds));
  const divided = (above: number[], below: number[]): number[] => above.map((value, i) => value / (below[i] ?? 0));
  return {
    step: divided(temperStepS, bareStepS),
    engine: divided(parts.temper.generate, parts.bare.generate),
    trainer: divided(parts.temper.update, parts.bare.update),
    temperStepS,
    bareStepS,
  };
}

function wholeSteps({ generate, update }: Seconds): number[] {
  return generate.map((seconds, index) => seconds + (update[index] ?? 0));
}

function describeRound(bare: BareRound, temper: TemperRound): string {
  const [one, other] = [median(wholeSteps(bare.seconds)), median(temper.seconds)];
  return `bare ${one.toFixed(3)} s, Temper ${other.toFixed(3)} s a step (${(other / one).toFixed(2)}×)`;
}

function spreads(ratios: Ratios): Record<string, Spread> {
  return Object.fromEntries(Object.entries(ratios).map(([name, values]) => [name, spread(values as number[])]));
}

function print({ name, model, ratios, split }: { name: string; model: Model; ratios: Ratios; split: Split }): void {
  const wish = name === 'pocket' ? ', wish 5' : '';
  console.log(`\n${name}: median (min–max)`);
  console.log(
    `  whole step, Temper / bare loop     ${showSpread(ratios.step)}   wanted at most ${model.wanted}${wish}`,
  );
  console.log(`  engine alone / bare generate       ${showSpread(ratios.engine)}   wanted at most ${WANTED_PARTS}`);
  console.log(`  trainer alone / bare update        ${showSpread(ratios.trainer)}   wanted at most ${WANTED_PARTS}`);
  console.log(`  seconds of a step, Temper          ${showSpread(ratios.temperStepS, 3)}`);
  console.log(`  seconds of a step, bare loop       ${showSpread(ratios.bareStepS, 3)}`);
  printSplit(split);
}

function repositoryFile(path: string): string {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}
