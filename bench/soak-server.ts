/** A GPU worker of the soak's own, without Temporal, and what it tells of itself. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { ENGINE_KEY_VARIABLE } from '../core/contract/wire-constants.ts';
import { collectLines } from '../workers/process/command.ts';
import { GPU_WORKER_FOLDER } from '../workers/project/folders.ts';
import { endChild } from '../workers/process/child-process.ts';
import { createClient, type Client } from './soak-client.ts';

export const KEY = 'a key of this bench';
/** The pocket model, and a copy of it that takes prompts of 10,000 tokens. */
export const MODELS = { short: { name: 'pocket', context: 4096 }, long: { name: 'long', context: 16_384 } } as const;
/** Prompt tokens and tools that fit the larger model, and not the smaller one. */
export const LONG_PROMPT = 10_000;
export const TOOLS = 200;

export interface SoakServer {
  readonly ask: Client;
  /** Limits of the smaller model's name: prompts of `beyond` tokens and `tools` tools are too long for it. */
  readonly short: { readonly context: number; readonly beyond: number; readonly tools: number };
  /** Whether a body that is announced as too long is read before it is refused. */
  readonly takesAll: boolean;
  /** That take a body. */
  readonly paths: readonly string[];
  gauges(): Promise<Gauges>;
  close(): Promise<void>;
}

/** Values of `GET /metrics`; all models added up. */
export interface Gauges {
  readonly running: number;
  readonly waiting: number;
  readonly kvCacheUsage: number;
  readonly prefixMib: number;
  readonly tasks: number;
  readonly files: number;
  readonly residentMib: number;
  /** Memory of the process before the engine; 0 without one. */
  readonly frontMib: number;
}

const NAMES: Readonly<Record<keyof Omit<Gauges, 'frontMib'>, string>> = {
  running: 'vllm:num_requests_running',
  waiting: 'vllm:num_requests_waiting',
  kvCacheUsage: 'vllm:kv_cache_usage_perc',
  prefixMib: 'temper:prefix_cache_bytes',
  tasks: 'temper:server_tasks',
  files: 'process_open_fds',
  residentMib: 'process_resident_memory_bytes',
};
export const MIB = 1 << 20;
/** For keys and values of all requests, and of kept prompts; of each model: small, so that all of it was in use before the memory is compared. */
export const CACHE = [768 * MIB, 32 * MIB] as const;
const LAST_LINES = 20;
export const STOP_MS = 10_000;

export async function startSoakServer(python: string, folder: string): Promise<SoakServer> {
  const models = join(folder, 'models.json');
  writeFileSync(models, JSON.stringify({ [MODELS.long.name]: makeLongModel(folder) }));
  mkdirSync(join(folder, 'store'));
  const engine = { kvCacheBytes: CACHE[0], prefixCacheBytes: CACHE[1] };
  const settings = { store: `file://${join(folder, 'store')}`, models, port: 0, role: 'sample', engine };
  const child = spawn(python, ['-m', 'temper_gpu', '--settings', JSON.stringify(settings), '--leash'], {
    env: { ...process.env, PYTHONPATH: GPU_WORKER_FOLDER, PYTHONUNBUFFERED: '1', [ENGINE_KEY_VARIABLE]: KEY },
    // Its end ends the worker, should this process die.
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ask = createClient(Number(await readLine(child, 'the GPU worker', readyPort)), KEY);
  return {
    ask,
    short: { context: MODELS.short.context, beyond: LONG_PROMPT, tools: TOOLS },
    takesAll: false,
    paths: ['/v1/chat/completions', '/v1/completions'],
    gauges: () => readGauges(ask),
    close: () => endChild(child, STOP_MS),
  };
}

/** The same weights: positions are turned, not learned, so that there may be more of them. */
export function makeLongModel(folder: string): string {
  const model = join(folder, MODELS.long.name);
  cpSync(join(GPU_WORKER_FOLDER, 'temper_gpu', 'pocket', 'model'), model, { recursive: true });
  const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as object;
  writeFileSync(
    join(model, 'config.json'),
    JSON.stringify({ ...config, max_position_embeddings: MODELS.long.context }),
  );
  return model;
}

function readyPort(line: string): string | undefined {
  if (!line.includes('"ready"')) return undefined;
  const { msg, port } = JSON.parse(line) as { msg?: string; port?: number };
  return msg === 'ready' ? port?.toString() : undefined;
}

/** Returns the first line that is not empty; a server that ends earlier is an error. */
export async function readLine(
  child: ChildProcess,
  name: string,
  read: (line: string) => string | undefined,
): Promise<string> {
  const last: string[] = [];
  const found = new Promise<string>((resolve) => {
    collectLines(child, (line) => {
      last.push(line);
      if (last.length > LAST_LINES) last.shift();
      const said = read(line);
      if (said !== undefined) resolve(said);
    });
  });
  const ended = once(child, 'exit').then(() => {
    throw new Error(`${name} ended:\n${last.join('\n')}`);
  });
  return Promise.race([found, ended]);
}

export async function readGauges(ask: Client): Promise<Gauges> {
  const { text } = await ask({ path: '/metrics' });
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const sum = (name: string): number =>
    samples
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  const gauges = Object.fromEntries(Object.entries(NAMES).map(([gauge, name]) => [gauge, sum(name)]));
  const { prefixMib, residentMib, ...counts } = gauges as unknown as Gauges;
  return { ...counts, prefixMib: prefixMib / MIB, residentMib: residentMib / MIB, frontMib: 0 };
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
