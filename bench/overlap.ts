/** `npm run bench -- overlap`: a step with and without `--max-staleness`, where playing takes as long as training. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { openTools, type Tools } from '../test/run/tools.ts';
import { countFlag, showSpread, spread, type Bench, type Flags } from './bench.ts';
import { plain } from './endtoend.ts';
import { readModel } from './python.ts';
import { runTemper, type Batch, type TemperRound } from './temper-run.ts';

const AGENT = fileURLToPath(new URL('endtoend-agent.ts', import.meta.url));
/** Of 20 bytes, and as few tokens: what engine and trainer both compute on two cores cannot overlap. */
const PROMPTS = plain(20, 4);
const [GROUPS, GROUP_SIZE] = [16, 8];
const LEARNING_RATE = 1e-5;
const CALIBRATION_STEPS = 5;

export const overlap: Bench = {
  name: 'overlap',
  summary:
    'wall time of a step without overlap over that with --max-staleness, where attempts wait as long as training',
  flags: { rounds: '3', steps: '15', passes: '24', staleness: '1' },
  run,
};

async function run(flags: Flags): Promise<object> {
  const [rounds, steps] = [countFlag(flags, 'rounds'), countFlag(flags, 'steps')];
  const [passes, staleness] = [countFlag(flags, 'passes'), countFlag(flags, 'staleness')];
  const tools = await openTools();
  const project = mkdtempSync(join(tmpdir(), 'temper-bench-overlap-'));
  mkdirSync(join(project, '.temper'));
  const play = await player(tools, project, passes);
  try {
    const { times } = await play('calibration', 0, CALIBRATION_STEPS, 0);
    const waitS = Math.max(0, times.load + times.train - times.play);
    console.log(
      `training takes ${times.train.toFixed(2)} s, playing ${times.play.toFixed(2)}: attempts wait ${waitS.toFixed(2)} s`,
    );
    const [alone, overlapped]: [TemperRound[], TemperRound[]] = [[], []];
    for (let round = 1; round <= rounds; round++) {
      alone.push(await play(`alone-${round}`, 0, steps, waitS));
      overlapped.push(await play(`overlapped-${round}`, staleness, steps, waitS));
    }
    const ratios = alone.map(({ wallS }, round) => wallS / overlapped[round]!.wallS);
    for (const [name, of] of Object.entries({ alone, overlapped })) console.log(describe(name, of));
    console.log(`ratio ${showSpread(ratios)}`);
    return { ...flags, waitS, ratios: { [`staleness-${staleness}`]: spread(ratios) } };
  } finally {
    rmSync(project, { recursive: true });
  }
}

type Play = (name: string, staleness: number, steps: number, waitS: number) => Promise<TemperRound>;

async function player(tools: Tools, project: string, passes: number): Promise<Play> {
  const prompts = join(project, 'prompts.json');
  writeFileSync(prompts, JSON.stringify(PROMPTS));
  const baseModel = await readModel(tools.python, 'random-pocket', project);
  const batch = { agent: AGENT, baseModel, groups: GROUPS, groupSize: GROUP_SIZE, learningRate: LEARNING_RATE };
  return (name, staleness, steps, waitS) => {
    const flags: Batch['flags'] = {
      passes: `${passes}`,
      ...(staleness > 0 ? { 'max-staleness': `${staleness}` } : {}),
    };
    const env = { TEMPER_BENCH_PROMPTS: prompts, TEMPER_BENCH_WAIT_MS: `${Math.round(waitS * 1000)}` };
    return runTemper(tools, project, name, { ...batch, steps, flags, env });
  };
}

function describe(name: string, played: readonly TemperRound[]): string {
  const [wall, train, playing] = [
    played.map(({ wallS }) => wallS),
    played.map(({ times }) => times.load + times.train),
    played.map(({ times }) => times.play),
  ];
  return `${name.padEnd(12)} ${showSpread(wall)} s a step, training ${showSpread(train)}, playing ${showSpread(playing)}`;
}
