/**
 * `npm run bench -- long`: a long run of tiny steps on a real Temporal server and a real worker process, engine and trainer
 * faked. What must not grow does not: histories, the worker's memory, a step's time.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';

import type { StepSummary, TrainResult } from '../core/contract/contract.ts';
import { sha256Hex } from '../core/text/hashes.ts';
import { GPU_QUEUE } from '../core/contract/wire-constants.ts';
import { rolloutQueue, runWorkflowId, storeQueue, WORKFLOW_QUEUE } from '../core/names/queues.ts';
import { defaultRunConfig } from '../core/rules/run-defaults.ts';
import { openStore } from '../store/bytes/open-store.ts';
import { readSteps } from '../store/records/runs/run-reader.ts';
import { fakeAdapterSha256, startFakeEngine, type FakeEngine } from '../test/fake-engine.ts';
import { startTestServer, type TestServer } from '../test/temporal-server.ts';
import type { GpuActivities } from '../workflows/activities.ts';
import type { trainRun } from '../workflows/train-run.ts';
import { countFlag, median, type Bench, type Flags } from './bench.ts';

const RUN = 'long';
const TEMPER = fileURLToPath(new URL('../cli/temper.js', import.meta.url));
const AGENT = fileURLToPath(new URL('digit-agent.ts', import.meta.url));
const SAMPLE_MS = 2000;
const TELL_MS = 30_000;
const MIB = 1 << 20;

export const long: Bench = {
  name: 'long',
  summary: 'thousands of tiny steps: histories, memory and step time stay bounded',
  flags: { steps: '2000', groups: '2', 'group-size': '4', 'eval-every': '100', 'worker-heap-mib': '4096' },
  run,
};

export interface Place {
  project: string;
  store: string;
  server: TestServer;
  engine: FakeEngine;
}

function run(flags: Flags): Promise<object> {
  const heapMiB = countFlag(flags, 'worker-heap-mib');
  return onFakeStack(heapMiB, (place, client, worker) => measure(flags, place, client, worker));
}

/** A real Temporal server and a real worker process; engine and trainer are faked. */
export async function onFakeStack<T>(
  heapMiB: number,
  play: (place: Place, client: Client, worker: ChildProcess) => Promise<T>,
): Promise<T> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const project = mkdtempSync(join(tmpdir(), 'temper-bench-long-'));
  mkdirSync(join(project, '.temper'));
  const [server, engine] = await Promise.all([startTestServer(), startFakeEngine()]);
  const place = { project, store: join(project, 'store'), server, engine };
  const [connection, native] = await Promise.all([
    Connection.connect({ address: server.address }),
    NativeConnection.connect({ address: server.address }),
  ]);
  const client = new Client({ connection });
  const storeId = await (await openStore(place.store)).id();
  const taskQueue = storeQueue(storeId, GPU_QUEUE);
  const gpu = await Worker.create({ connection: native, taskQueue, activities: { ...fakeGpu() } });
  const worker = await startWorker(place, heapMiB);
  try {
    return await gpu.runUntil(play(place, client, worker));
  } finally {
    worker.kill('SIGTERM');
    if (worker.exitCode === null) await once(worker, 'exit');
    await Promise.all([connection.close(), native.close(), engine.close()]);
    await server.stop();
    rmSync(project, { recursive: true });
  }
}

async function measure(flags: Flags, place: Place, client: Client, worker: ChildProcess): Promise<object> {
  const steps = countFlag(flags, 'steps');
  const store = await openStore(place.store);
  const config = defaultRunConfig({
    run: RUN,
    agent: 'bench-digit',
    baseModel: 'pocket',
    steps,
    groupsPerStep: countFlag(flags, 'groups'),
    groupSize: countFlag(flags, 'group-size'),
    replacementRounds: 0,
    evalScenarios: 4,
    evalEvery: countFlag(flags, 'eval-every'),
  });
  const storeId = await store.id();
  const queues = { rollout: rolloutQueue(storeId, config.agent), gpu: storeQueue(storeId, GPU_QUEUE) };
  const memory = watchMemory(worker);
  const startedAt = Date.now();
  const handle = await client.workflow.start<typeof trainRun>('trainRun', {
    workflowId: runWorkflowId(storeId, RUN),
    taskQueue: storeQueue(storeId, WORKFLOW_QUEUE),
    args: [{ config, queues, carried: null, resume: null }],
  });
  const telling = setInterval(() => tell(memory.samples), TELL_MS);
  try {
    const { state, notes } = await Promise.race([handle.result(), refuseDeath(worker, place)]);
    const curve = await readSteps(store, RUN);
    if (curve.length !== steps) throw new Error(`the curve must have ${steps} steps, it has ${curve.length}`);
    const seconds = (Date.now() - startedAt) / 1000;
    const found = {
      ...describeHistories(await listHistories(client, handle.workflowId)),
      ...describeMemory(memory.samples),
      ...describeTimes(curve),
    };
    for (const [name, value] of Object.entries(found)) console.log(`  ${name.padEnd(28)} ${JSON.stringify(value)}`);
    return { state, steps, seconds, notes: notes.length, ...found };
  } finally {
    clearInterval(telling);
    memory.stop();
  }
}

/** Commits nothing; the adapters are those that the fake engine answers with. */
function fakeGpu(): GpuActivities {
  const commit = ({ run: name, branch }: { run: string; branch: number }, step: number): TrainResult => {
    const manifestSha256 = sha256Hex(`manifest ${branch} ${step}`);
    const adapterSha256 = fakeAdapterSha256(`${name}@${step}`) ?? '';
    const checkpoint = { run: name, branch, step, manifestSha256, adapterSha256 };
    return { checkpoint, metrics: { loss: 0.1, gradNorm: 1 }, seconds: { train: 0 }, found: false };
  };
  return {
    initialise: async (input) => commit(input, 0),
    train: async (input) => commit(input, input.step),
  };
}

/** With little heap it dies of what it keeps; with much, its memory says little of that. */
async function startWorker({ project, store, server, engine }: Place, heapMiB: number): Promise<ChildProcess> {
  const log = join(project, 'worker.log');
  const file = openSync(log, 'w');
  const child = spawn(process.execPath, [`--max-old-space-size=${heapMiB}`, TEMPER, 'worker', '--agent', AGENT], {
    cwd: project,
    stdio: ['ignore', file, file],
    env: {
      ...process.env,
      TEMPORAL_ADDRESS: server.address,
      TEMPORAL_NAMESPACE: server.namespace,
      TEMPER_STORE: store,
      TEMPER_ENGINE_URL: engine.url,
      TEMPER_ENGINE_KEY: engine.key,
    },
  });
  closeSync(file);
  while (!readFileSync(log, 'utf8').includes('worker ready')) {
    if (child.exitCode !== null) throw new Error(`the worker ended: ${readFileSync(log, 'utf8').slice(-2000)}`);
    await sleep(100);
  }
  return child;
}

/** Reports a death with the worker's last words: no supervisor restarts it here. */
export async function refuseDeath(worker: ChildProcess, { project }: Place): Promise<never> {
  const [code, signal] = (await once(worker, 'exit')) as [number | null, string | null];
  const lastWords = readFileSync(join(project, 'worker.log'), 'utf8').slice(-2000);
  throw new Error(`the worker ended (${signal ?? `exit code ${code}`}): ${lastWords}`);
}

export function watchMemory({ pid }: ChildProcess): { samples: number[]; stop: () => void } {
  const samples: number[] = [];
  const timer = setInterval(() => {
    const status = `/proc/${pid}/status`;
    const resident = existsSync(status) ? /VmRSS:\s+(\d+) kB/.exec(readFileSync(status, 'utf8'))?.[1] : undefined;
    if (resident !== undefined) samples.push((Number(resident) * 1024) / MIB);
  }, SAMPLE_MS);
  return { samples, stop: () => clearInterval(timer) };
}

function tell(samples: readonly number[]): void {
  console.log(`  ${samples.length * (SAMPLE_MS / 1000)} s: worker ${samples.at(-1)?.toFixed(0)} MiB`);
}

interface History {
  events: number;
  bytes: number;
}

async function listHistories(client: Client, workflowId: string): Promise<History[]> {
  const histories: (History & { startMs: number })[] = [];
  for await (const { historyLength, historySize, startTime } of client.workflow.list({
    query: `WorkflowId = '${workflowId}'`,
  })) {
    histories.push({ events: historyLength, bytes: historySize ?? 0, startMs: startTime.getTime() });
  }
  return histories.toSorted((a, b) => a.startMs - b.startMs);
}

function describeHistories(histories: readonly History[]): Record<string, number> {
  return {
    histories: histories.length,
    largestHistoryEvents: Math.max(...histories.map(({ events }) => events)),
    largestHistoryMiB: rounded(Math.max(...histories.map(({ bytes }) => bytes)) / MIB),
  };
}

/** Tenths of the run, so that growth would be seen. */
function describeMemory(samples: readonly number[]): Record<string, number | number[]> {
  const size = Math.max(1, Math.floor(samples.length / 10));
  const tenths = Array.from({ length: 10 }, (_, index) => median(samples.slice(index * size, (index + 1) * size)));
  return {
    workerMiBByTenth: tenths.filter((value) => !Number.isNaN(value)).map((value) => Math.round(value)),
    workerMiBLargest: Math.round(Math.max(...samples)),
  };
}

function describeTimes(curve: readonly StepSummary[]): Record<string, number> {
  const size = Math.min(100, Math.ceil(curve.length / 3));
  const seconds = curve.map((step) => step.seconds['step'] ?? 0);
  return {
    stepSecondsFirst: rounded(median(seconds.slice(2, 2 + size))),
    stepSecondsLast: rounded(median(seconds.slice(-size))),
  };
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
