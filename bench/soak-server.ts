/** A GPU worker of the soak's own, without Temporal, and what it tells of itself. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { ENGINE_KEY_VARIABLE } from '../core/wire-constants.ts';
import { collectLines } from '../workers/command.ts';
import { GPU_WORKER_FOLDER } from '../workers/folders.ts';
import { endChild } from '../workers/local-stack/child-process.ts';
import { createClient, type Client } from './soak-client.ts';

const KEY = 'a key of this bench';
/** The pocket model, and a copy of it that takes prompts of 10,000 tokens. */
export const MODELS = { short: { name: 'pocket', context: 4096 }, long: { name: 'long', context: 16_384 } } as const;

export interface SoakServer {
  readonly ask: Client;
  gauges(): Promise<Gauges>;
  close(): Promise<void>;
}

/** Of `GET /metrics`; all models added up. */
export interface Gauges {
  readonly running: number;
  readonly waiting: number;
  readonly kvCacheUsage: number;
  readonly prefixMib: number;
  readonly tasks: number;
  readonly files: number;
  readonly residentMib: number;
}

const NAMES: Readonly<Record<keyof Gauges, string>> = {
  running: 'vllm:num_requests_running',
  waiting: 'vllm:num_requests_waiting',
  kvCacheUsage: 'vllm:kv_cache_usage_perc',
  prefixMib: 'temper:prefix_cache_bytes',
  tasks: 'temper:server_tasks',
  files: 'process_open_fds',
  residentMib: 'process_resident_memory_bytes',
};
const MIB = 1 << 20;
/** Of each model: small, so that all of it was in use before the memory is compared. */
const CACHE = ['--kv-cache-bytes', String(768 * MIB), '--prefix-cache-bytes', String(32 * MIB)];
const LAST_LINES = 20;
const STOP_MS = 10_000;

export async function startSoakServer(python: string, folder: string): Promise<SoakServer> {
  const models = join(folder, 'models.json');
  writeFileSync(models, JSON.stringify({ [MODELS.long.name]: makeLongModel(folder) }));
  mkdirSync(join(folder, 'store'));
  const place = ['--store', `file://${join(folder, 'store')}`, '--models', models, '--port', '0'];
  const args = [...place, '--no-temporal', '--leash', ...CACHE];
  const child = spawn(python, ['-m', 'temper_gpu', ...args], {
    env: { ...process.env, PYTHONPATH: GPU_WORKER_FOLDER, PYTHONUNBUFFERED: '1', [ENGINE_KEY_VARIABLE]: KEY },
    // Its end ends the worker, should this process die.
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ask = createClient(await readPort(child), KEY);
  return { ask, gauges: () => readGauges(ask), close: () => endChild(child, STOP_MS) };
}

/** The same weights: positions are turned, not learned, so that there may be more of them. */
function makeLongModel(folder: string): string {
  const model = join(folder, MODELS.long.name);
  cpSync(join(GPU_WORKER_FOLDER, 'temper_gpu', 'pocket', 'model'), model, { recursive: true });
  const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as object;
  writeFileSync(
    join(model, 'config.json'),
    JSON.stringify({ ...config, max_position_embeddings: MODELS.long.context }),
  );
  return model;
}

async function readPort(child: ChildProcess): Promise<number> {
  const last: string[] = [];
  const found = new Promise<number>((resolve) => {
    collectLines(child, (line) => {
      last.push(line);
      if (last.length > LAST_LINES) last.shift();
      if (!line.includes('"ready"')) return;
      const { msg, port } = JSON.parse(line) as { msg?: string; port?: number };
      if (msg === 'ready' && port !== undefined) resolve(port);
    });
  });
  const ended = once(child, 'exit').then(() => {
    throw new Error(`the GPU worker ended:\n${last.join('\n')}`);
  });
  return Promise.race([found, ended]);
}

async function readGauges(ask: Client): Promise<Gauges> {
  const { text } = await ask({ path: '/metrics' });
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const sum = (name: string): number =>
    samples
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  const gauges = Object.fromEntries(Object.entries(NAMES).map(([gauge, name]) => [gauge, sum(name)]));
  const { prefixMib, residentMib, ...counts } = gauges as unknown as Gauges;
  return { ...counts, prefixMib: prefixMib / MIB, residentMib: residentMib / MIB };
}

/** True once it holds; false if it did not within this time. */
export async function holdsWithin(
  server: SoakServer,
  holds: (gauges: Gauges) => boolean,
  withinMs: number,
): Promise<boolean> {
  const end = Date.now() + withinMs;
  while (!holds(await server.gauges())) {
    if (Date.now() > end) return false;
    await sleep(100);
  }
  return true;
}
