/** `temper serve` as a server of the soak: the command itself, and what its two processes use. */
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ENGINE_KEY_VARIABLE } from '../core/contract/wire-constants.ts';
import { makeServableRun } from '../test/store/records/servable-run.ts';
import { endChild } from '../workers/process/child-process.ts';
import { runScript } from './python.ts';
import { createClient } from './soak-client.ts';
import {
  CACHE,
  KEY,
  makeLongModel,
  MIB,
  MODELS,
  readGauges,
  readLine,
  STOP_MS,
  type SoakServer,
} from './soak-server.ts';

const TEMPER = join(import.meta.dirname, '../cli/temper.js');
const [KV_CACHE_BYTES, PREFIX_CACHE_BYTES] = CACHE;

export async function startSoakServe(python: string, folder: string): Promise<SoakServer> {
  const { context } = MODELS.long;
  const adapter = join(folder, 'adapter');
  mkdirSync(adapter);
  const model = makeLongModel(folder);
  await runScript(python, 'make_adapter.py', [model, adapter]);
  await makeServableRun({ project: folder, run: 'demo', baseModel: MODELS.long.name, adapter, rollout: {} });
  const engine = { kvCacheBytes: KV_CACHE_BYTES, prefixCacheBytes: PREFIX_CACHE_BYTES };
  const config = { models: { [MODELS.long.name]: model }, engine };
  writeFileSync(join(folder, 'temporal.config.ts'), `export default ${JSON.stringify(config)};\n`);
  const keyFile = join(folder, 'engine-key');
  const names = Object.values(MODELS).flatMap(({ name }) => ['--model-name', name]);
  const child = spawn(process.execPath, [TEMPER, 'serve', 'demo@0', '--port', '0', '--json', ...names], {
    cwd: folder,
    env: { ...process.env, TEMPER_SERVE_KEY: KEY, TEMPER_PYTHON: tellingPython(python, folder, keyFile) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const port = await readLine(child, 'temper serve', (line) => /"baseUrl": "\S+:(\d+)\/v1"/.exec(line)?.[1]);
  const askEngine = createClient(enginePort(folder), readFileSync(keyFile, 'utf8'));
  return {
    ask: createClient(Number(port), KEY),
    // It has one model.
    short: { context, beyond: 2 * context, tools: 2000 },
    takesAll: true,
    paths: ['/v1/chat/completions', '/v1/responses', '/v1/messages'],
    gauges: async () => addFront(await readGauges(askEngine), child),
    close: () => endChild(child, STOP_MS),
  };
}

/** A Python wrapper that saves the engine's private key: the engine reports its usage only with this key. */
function tellingPython(python: string, folder: string, keyFile: string): string {
  const file = join(folder, 'python');
  const write = `[ -z "$${ENGINE_KEY_VARIABLE}" ] || (umask 077; printf %s "$${ENGINE_KEY_VARIABLE}" > '${keyFile}')`;
  writeFileSync(file, `#!/bin/sh\n${write}\nexec '${python}' "$@"\n`);
  chmodSync(file, 0o755);
  return file;
}

function enginePort(folder: string): number {
  const lines = readFileSync(join(folder, '.temper', 'logs', 'serve.jsonl'), 'utf8').split('\n');
  const ready = lines.find((line) => line.includes('"ready"')) ?? '{}';
  return (JSON.parse(ready) as { port: number }).port;
}

type Measured = Awaited<ReturnType<SoakServer['gauges']>>;

/** Adds the usage of Node's process; Linux only. */
function addFront(engine: Measured, { pid }: ChildProcess): Measured {
  const proc = `/proc/${pid}`;
  if (!existsSync(proc)) return engine;
  const [, kib = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(join(proc, 'status'), 'utf8')) ?? [];
  const files = engine.files + readdirSync(join(proc, 'fd')).length;
  return { ...engine, files, frontMib: (Number(kib) * 1024) / MIB };
}
