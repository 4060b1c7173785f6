/** A second process on the queues of a project's stack, as another host would have it, with a log of its own. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { GPU_WORKER_FOLDER, projectFolders } from '../../workers/project/folders.ts';
import { openTools } from '../run/tools.ts';
import { temperCommand, type Project } from '../stack.ts';
import { until } from '../until.ts';

const PROGRAM_WITH_POINTS = fileURLToPath(new URL('points/gpu_worker.py', import.meta.url));
const READY_WITHIN_MS = 300_000;

export class SecondWorker {
  readonly child: ChildProcess;
  readonly log: () => Record<string, unknown>[];

  constructor(child: ChildProcess, log: () => Record<string, unknown>[]) {
    this.child = child;
    this.log = log;
  }

  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.child.kill('SIGCONT');
  }

  /** Steps that these messages about a run name. */
  told(message: string, run: string): number[] {
    return told(this.log(), message, run);
  }

  async close(): Promise<void> {
    this.thaw();
    this.child.kill('SIGTERM');
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit');
  }
}

export function told(log: Record<string, unknown>[], message: string, run: string): number[] {
  return log.filter(({ msg, run: of }) => msg === message && of === run).map(({ step }) => Number(step));
}

/** With a folder for its points, it is hit where a file there aims at. */
export async function startSecondGpuWorker(project: Project, points: string | null = null): Promise<SecondWorker> {
  const folders = projectFolders(project.folder);
  const settings = {
    store: pathToFileURL(folders.store).href,
    port: 0,
    temporalAddress: temporalAddress(project),
    namespace: 'default',
    queue: 'gpu',
  };
  const program = points === null ? ['-m', 'temper_gpu'] : [PROGRAM_WITH_POINTS];
  const line = [(await openTools()).python, ...program, '--settings', JSON.stringify(settings), '--leash'];
  return start(project, 'second-gpu-worker', 'polling', line, {
    cwd: GPU_WORKER_FOLDER,
    PYTHONUNBUFFERED: '1',
    PYTHONPATH: GPU_WORKER_FOLDER,
    ...(points === null ? {} : { TEMPER_CRASH_FOLDER: points }),
  });
}

export function startSecondTypescriptWorker(project: Project, agent: string): Promise<SecondWorker> {
  const port = project.stackFile()?.ports?.engine;
  return start(project, 'second-worker', 'worker ready', [...temperCommand(), 'worker', '--agent', agent], {
    cwd: project.folder,
    TEMPORAL_ADDRESS: temporalAddress(project),
    TEMPORAL_TLS: 'false',
    TEMPER_ENGINE_URL: `http://127.0.0.1:${port}/v1`,
  });
}

export function temporalAddress(project: Project): string {
  return `127.0.0.1:${project.stackFile()?.ports?.temporal}`;
}

async function start(
  project: Project,
  name: string,
  ready: string,
  [file = '', ...args]: readonly string[],
  { cwd, ...variables }: { cwd: string } & Record<string, string>,
): Promise<SecondWorker> {
  const folders = projectFolders(project.folder);
  const key = readFileSync(folders.engineKey, 'utf8').trim();
  const output = openSync(join(folders.logs, `${name}.jsonl`), 'w');
  const child = spawn(file, args, {
    cwd,
    stdio: ['pipe', output, 'inherit'],
    env: { ...process.env, TEMPER_ENGINE_KEY: key, ...variables },
  });
  closeSync(output);
  const worker = new SecondWorker(child, () => project.log(name));
  try {
    await until(`the ${name} polls`, () => worker.log().some(({ msg }) => msg === ready), READY_WITHIN_MS);
  } catch (error) {
    // Left alone it would be handed work of the tests that follow.
    await worker.close();
    throw error;
  }
  return worker;
}
