/**
 * `npm run bench -- overlap`: a step with and without `--max-staleness`, where playing takes as long as training. Engine
 * and trainer are two GPU workers with a thread each, because on one device neither can compute beside the other.
 */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { ENGINE_KEY_VARIABLE } from '../core/contract/wire-constants.ts';
import { freePort } from '../test/free-port.ts';
import { openTools, type Tools } from '../test/run/tools.ts';
import { startTestServer } from '../test/temporal-server.ts';
import { ENGINE_URL_VARIABLE, loadConfig } from '../workers/config/config.ts';
import { mergeEngineConfig } from '../core/rules/engine-rules.ts';
import { endChild } from '../workers/process/child-process.ts';
import { spawnGpuWorker } from '../workers/local-stack/children/gpu-worker.ts';
import { countFlag, showSpread, spread, type Bench, type Flags } from './bench.ts';
import { plain } from './endtoend-workloads.ts';
import { readModel } from './python.ts';
import { runTemper, type Batch, type TemperRound } from './temper-run.ts';

const AGENT = fileURLToPath(new URL('endtoend-agent.ts', import.meta.url));
/** Prompts of 20 bytes, and as few tokens: engine and trainer can't overlap on two cores while both compute. */
const PROMPTS = plain(20, 4);
const [GROUPS, GROUP_SIZE] = [16, 8];
const LEARNING_RATE = 1e-5;
const CALIBRATION_STEPS = 5;
const STOP_MS = 10_000;

export const overlap: Bench = {
  name: 'overlap',
  summary:
    'wall time of a step without overlap over that with --max-staleness, where attempts wait as long as training, and engine and trainer are two GPU workers',
  flags: { rounds: '3', steps: '15', passes: '60', staleness: '1' },
  run,
};

async function run(flags: Flags): Promise<object> {
  const [rounds, steps] = [countFlag(flags, 'rounds'), countFlag(flags, 'steps')];
  const [passes, staleness] = [countFlag(flags, 'passes'), countFlag(flags, 'staleness')];
  const tools = await openTools();
  const project = mkdtempSync(join(tmpdir(), 'temper-bench-overlap-'));
  mkdirSync(join(project, '.temper'));
  const baseModel = await readModel(tools.python, 'random-pocket', project);
  const workers = await startWorkers(project, baseModel);
  const play = player(tools, project, baseModel, workers, passes);
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
    await workers.close();
    rmSync(project, { recursive: true });
  }
}

type Play = (name: string, staleness: number, steps: number, waitS: number) => Promise<TemperRound>;

function player(tools: Tools, project: string, baseModel: string, workers: Workers, passes: number): Play {
  const prompts = join(project, 'prompts.json');
  writeFileSync(prompts, JSON.stringify(PROMPTS));
  const batch = { agent: AGENT, baseModel, groups: GROUPS, groupSize: GROUP_SIZE, learningRate: LEARNING_RATE };
  return (name, staleness, steps, waitS) => {
    const flags: Batch['flags'] = {
      passes: `${passes}`,
      ...(staleness > 0 ? { 'max-staleness': `${staleness}` } : {}),
    };
    const told = { TEMPER_BENCH_PROMPTS: prompts, TEMPER_BENCH_WAIT_MS: `${Math.round(waitS * 1000)}` };
    const { env, enginePort } = workers;
    return runTemper(tools, project, name, { ...batch, steps, flags, enginePort, env: { ...env, ...told } });
  };
}

interface Workers {
  /** Environment of `temper train`. */
  readonly env: Readonly<Record<string, string>>;
  readonly enginePort: number;
  close(): Promise<void>;
}

/** A Temporal server, an engine without Temporal, and a GPU worker that trains. */
async function startWorkers(project: string, baseModel: string): Promise<Workers> {
  const server = await startTestServer();
  const children: ChildProcess[] = [];
  const close = async () => {
    await Promise.all(children.map((child) => endChild(child, STOP_MS)));
    await server.stop();
  };
  const key = randomBytes(32).toString('base64url');
  const models = join(project, 'models.json');
  writeFileSync(models, JSON.stringify({ [basename(baseModel)]: baseModel }));
  const config = await loadConfig(project, {});
  const start = async (role: 'sample' | 'train'): Promise<number> => {
    const port = await freePort();
    const child = await spawnGpuWorker(
      {
        project,
        env: { ...process.env, TEMPORAL_ADDRESS: server.address },
        signal: new AbortController().signal,
        onEvent: () => undefined,
        place: { port, role },
      },
      {
        config: { ...config, engine: { ...mergeEngineConfig(config.engine, { kind: 'embedded' }), threads: 1 } },
        models,
        key,
        output: 'pipe',
      },
    );
    children.push(child);
    // Unread output would stop it.
    for (const output of [child.stdout, child.stderr]) output?.resume();
    await untilHealthy(port, child);
    return port;
  };
  try {
    const enginePort = await start('sample');
    await start('train');
    const engine = { [ENGINE_URL_VARIABLE]: `http://127.0.0.1:${enginePort}`, [ENGINE_KEY_VARIABLE]: key };
    return { env: { TEMPORAL_ADDRESS: server.address, ...engine }, enginePort, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function untilHealthy(port: number, child: ChildProcess): Promise<void> {
  while (child.exitCode === null && child.signalCode === null) {
    const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => null);
    if (answer?.ok === true) return;
    await sleep(200);
  }
  throw new Error(`a GPU worker ended with ${child.exitCode ?? child.signalCode} while it started`);
}

function describe(name: string, played: readonly TemperRound[]): string {
  const [wall, train, playing] = [
    played.map(({ wallS }) => wallS),
    played.map(({ times }) => times.load + times.train),
    played.map(({ times }) => times.play),
  ];
  return `${name.padEnd(12)} ${showSpread(wall)} s a step, training ${showSpread(train)}, playing ${showSpread(playing)}`;
}
