/** Local stacks for tests: stand-ins for what a stack starts, and processes that hold a stack to be killed. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openLocalStack, type LocalStack } from '../../../workers/local-stack/client.ts';
import type { LocalStackOptions } from '../../../workers/local-stack/options.ts';
import type { StackEvent } from '../../../workers/events.ts';
import { processStartTime } from '../../../workers/process/processes.ts';
import { readStackFile, type StackFile } from '../../../workers/local-stack/protocol/stack-file.ts';
import { nodeFlags } from '../../../workers/process/module-path.ts';

const standIn = (name: string) => fileURLToPath(new URL(`stand-ins/${name}`, import.meta.url));

/** A real Temporal server, and stand-ins for the workers. */
export const WITH_SERVER = {
  gpuWorker: [process.execPath, standIn('gpu-worker.mjs')],
  worker: [process.execPath, standIn('worker.mjs')],
};

export const STAND_INS = { ...WITH_SERVER, temporal: [process.execPath, standIn('temporal.mjs')] };

export function makeProject(): string {
  return mkdtempSync(join(tmpdir(), 'stack-test-'));
}

export function removeProject(project: string): void {
  rmSync(project, { recursive: true, force: true, maxRetries: 3 });
}

/** In this process; events are kept. */
export async function openStack(
  project: string,
  options: Partial<LocalStackOptions> = {},
): Promise<{ stack: LocalStack; events: StackEvent[] }> {
  const events: StackEvent[] = [];
  const onEvent = (event: StackEvent) => void events.push(event);
  const stack = await openLocalStack({
    project,
    agentFile: null,
    models: {},
    commands: STAND_INS,
    onEvent,
    ...options,
  });
  return { stack, events };
}

export interface Holder {
  readonly process: ChildProcess;
  /** Resolves with what the holder's stack is. */
  readonly opened: Promise<LocalStack>;
  end(): Promise<void>;
}

/** In a process of its own, as a command line would. */
export function holdStack(project: string): Holder {
  const args = [...nodeFlags(), standIn('hold-stack.ts'), project, JSON.stringify(STAND_INS)];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const opened = new Promise<LocalStack>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => resolve(JSON.parse(line) as LocalStack));
    child.once('close', (code) => reject(new Error(`the holder ended with ${code}`)));
  });
  opened.catch(() => undefined);
  return {
    process: child,
    opened,
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}

export function stackFile(project: string): StackFile {
  const stack = readStackFile(join(project, '.temper', 'stack.json'));
  if (stack === null) throw new Error('there is no stack.json');
  return stack;
}

export function childPid(project: string, name: string): number {
  const mark = stackFile(project).children.find((child) => child.name === name);
  if (mark === undefined) throw new Error(`${name} does not run`);
  return mark.pid;
}

export const isRunning = (pid: number): boolean => processStartTime(pid) !== null;

export async function until(what: string, condition: () => boolean, limitMs = 100_000): Promise<void> {
  for (const end = Date.now() + limitMs; !holds(condition); await sleep(30)) {
    if (Date.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
  }
}

function holds(condition: () => boolean): boolean {
  try {
    return condition();
  } catch {
    return false;
  }
}
