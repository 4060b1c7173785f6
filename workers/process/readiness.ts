/** When a child is of use: its port answers, its health page says so, or it has said so itself. */
import type { ChildProcess } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { collectLines } from './command.ts';

export type Readiness =
  | { readonly kind: 'port'; readonly port: number }
  | { readonly kind: 'health'; readonly url: string }
  | { readonly kind: 'line'; readonly text: string };

const POLL_MS = 100;
const ANSWER_MS = 3000;

/** False if the child ended first. */
export async function waitUntilReady(ready: Readiness, child: ChildProcess, alive: AbortSignal): Promise<boolean> {
  if (ready.kind === 'line') return saysLine(ready.text, child, alive);
  const probe = ready.kind === 'port' ? () => answersPort(ready.port) : () => isHealthy(ready.url);
  while (!alive.aborted) {
    if (await probe()) return !alive.aborted;
    await sleep(POLL_MS);
  }
  return false;
}

function saysLine(text: string, child: ChildProcess, alive: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    alive.addEventListener('abort', () => resolve(false), { once: true });
    collectLines(child, (line) => {
      if (line.includes(text)) resolve(true);
    });
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
