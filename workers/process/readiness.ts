/** When a child is of use: its port answers, its health page says so, or it has told so. */
import type { ChildProcess } from 'node:child_process';
import { connect } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { splitLines } from './command.ts';

export type Readiness =
  | { readonly kind: 'port'; readonly port: number }
  | { readonly kind: 'health'; readonly url: string }
  /** A line on a stream of its own: on its output, a program prints whatever others wrote. */
  | { readonly kind: 'told' };

/** The file descriptor on which a child tells that it is of use. */
export const TOLD_FD = 3;

const POLL_MS = 100;
const ANSWER_MS = 3000;

/** False if the child ended first. */
export async function waitUntilReady(ready: Readiness, child: ChildProcess, alive: AbortSignal): Promise<boolean> {
  if (ready.kind === 'told') return readTold(child, alive);
  const probe = ready.kind === 'port' ? () => answersPort(ready.port) : () => isHealthy(ready.url);
  while (!alive.aborted) {
    if (await probe()) return !alive.aborted;
    await sleep(POLL_MS);
  }
  return false;
}

function readTold(child: ChildProcess, alive: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    alive.addEventListener('abort', () => resolve(false), { once: true });
    splitLines(child.stdio[TOLD_FD] as Readable, () => resolve(true));
  });
}

function answersPort(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: ANSWER_MS });
    const answer = (open: boolean) => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => answer(true));
    socket.once('error', () => answer(false));
    socket.once('timeout', () => answer(false));
  });
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
