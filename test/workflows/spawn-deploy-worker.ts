/** Starts `deploy-worker.ts` as a process, with the keys of targets in its environment; it ends with its test. */
import { spawn, type ChildProcess } from 'node:child_process';
import { inject, onTestFinished } from 'vitest';

import { codeCommand } from '../compiled.ts';
import { KEYS } from '../outbound/deploy/made-deployment.ts';

interface WorkerOptions {
  readonly taskQueue: string;
  readonly storeUri: string;
  /** Address that the proof asks. */
  readonly proof: string;
  readonly env: Readonly<Record<string, string>>;
  /** Gets what it prints. */
  readonly logs: string[];
}

export function spawnDeployWorker({ taskQueue, storeUri, proof, env, logs }: WorkerOptions): ChildProcess {
  const args = [inject('temporalAddress'), taskQueue, inject('workflowBundle'), storeUri, proof];
  const [node = '', ...program] = codeCommand('test/workflows/deploy-worker.ts');
  const child = spawn(node, [...program, ...args], {
    env: { ...process.env, ...KEYS, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => void logs.push(String(chunk)));
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}
