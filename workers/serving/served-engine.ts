/** Engine without Temporal for one command: a GPU worker on a free port of loopback, with a private key. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChildProcess } from 'node:child_process';
import { FAILURES, TemperError, type FailureType } from '../../core/contract/failures.ts';
import { connectEngine, type EngineAddress, type EngineConnection } from '../../play/connections/engine-connection.ts';
import { collectLines, whenEnded } from '../process/command.ts';
import { makeProjectFolders } from '../project/folders.ts';
import { openChildLog } from '../process/child-log.ts';
import { endChild } from '../process/child-process.ts';
import { spawnGpuWorker, type GpuWorkerOptions, type GpuWorkerPlace } from '../local-stack/children/gpu-worker.ts';

export interface ServedEngine {
  /** Null while it starts. It may start again, on another port. */
  connection(): EngineConnection | null;
  /** The same for clients of their own, such as one that reads a stream. */
  address(): EngineAddress | null;
  /** Resolves once the process has ended: to why it did, in words. */
  readonly ended: Promise<string>;
  close(): Promise<void>;
}

interface Options extends Omit<GpuWorkerOptions, 'place'>, Pick<GpuWorkerPlace, 'config' | 'models'> {
  /** Policies are served on their base model in another type, or packed otherwise, than they were trained on. */
  readonly anyBase: boolean;
}

const LOG = 'serve';
const STOP_MS = 8000;
const LAST_LINES = 3;

export async function startServedEngine({ config, models, anyBase, ...options }: Options): Promise<ServedEngine> {
  const key = randomBytes(32).toString('base64url');
  // With port 0 the system chooses one, and the worker says which.
  const place = { port: 0, role: anyBase ? 'sample-any-base' : 'sample' } as const;
  const child = await spawnGpuWorker({ ...options, place }, { config, models, key, output: 'pipe' });
  const log = openChildLog(makeProjectFolders(options.project).logs, LOG);
  const last: string[] = [];
  let connection: EngineConnection | null = null;
  let address: EngineAddress | null = null;
  collectLines(child, (line) => {
    last.push(log.write(line));
    if (last.length > LAST_LINES) last.shift();
    const port = readyPort(line);
    if (port === null) return;
    connection?.close().catch((error: unknown) => log.write(String(error)));
    address = { url: `http://127.0.0.1:${port}`, key };
    connection = connectEngine(address);
  });
  return {
    connection: () => connection,
    address: () => address,
    ended: new Promise((resolve) => whenEnded(child, (exit) => resolve([exit, ...last].join(' | ')))),
    async close() {
      await connection?.close();
      if (isRunning(child)) await endChild(child, STOP_MS);
      log.close();
    },
  };
}

function isRunning({ exitCode, signalCode, pid }: ChildProcess): boolean {
  return pid !== undefined && exitCode === null && signalCode === null;
}

/** Port in the line that says the worker listens. */
function readyPort(line: string): number | null {
  if (!line.startsWith('{') || !line.includes('"ready"')) return null;
  try {
    const { msg, port } = JSON.parse(line) as { msg?: unknown; port?: unknown };
    return msg === 'ready' && typeof port === 'number' ? port : null;
  } catch {
    return null;
  }
}

const POLL_MS = 100;
const LOADING = new Set([429, 503]);
const FIRST_ANSWER_MS = 600_000;

/** Has the policy loaded: what is wrong with model or weights is said before anybody asks. */
export async function loadPolicy(engine: ServedEngine, policy: string, signal: AbortSignal): Promise<void> {
  const ended = engine.ended.then((reason) => {
    throw new TemperError(
      'EngineFailed',
      `the engine ended while it started (${reason}); see .temper/logs/serve.jsonl`,
    );
  });
  ended.catch(() => undefined);
  await Promise.race([ended, askOnce(engine, policy, signal)]);
}

async function askOnce(engine: ServedEngine, policy: string, signal: AbortSignal): Promise<void> {
  const body = JSON.stringify({ model: policy, messages: [{ role: 'user', content: '?' }], max_tokens: 1 });
  for (;;) {
    signal.throwIfAborted();
    const answer = await engine
      .connection()
      ?.post(body, { headers: {}, deadlineMs: FIRST_ANSWER_MS, signals: [signal] })
      .catch(() => null);
    if (answer?.status === 200) return;
    if (answer && !LOADING.has(answer.status)) throw describeAnswer(answer.text);
    await sleep(POLL_MS, undefined, { signal });
  }
}

function describeAnswer(text: string): TemperError {
  const { error } = JSON.parse(text) as { error: { type: string; message: string } };
  const type = Object.hasOwn(FAILURES, error.type) ? (error.type as FailureType) : 'EngineFailed';
  return new TemperError(type, error.message);
}
