import { hostname } from 'node:os';

import { encodeJson } from '../store/bytes/json.ts';
import type { Dependencies } from './dependencies.ts';
import type { Scope } from './activity.ts';

/** Beside a write-once object, outside every hash: who made it, when, from which code, and the order in which each attempt made its calls. */
export async function writeTimes(
  { store }: Dependencies,
  key: string,
  scope: Scope,
  facts: { startedAt: number; endedAt: number; agentCodeSha256: string; callOrders: Record<number, number[]> },
): Promise<void> {
  if (!scope.isFresh()) return;
  const seconds = (facts.endedAt - facts.startedAt) / 1000;
  const times = { seconds, ...facts, host: hostname(), pid: process.pid, activityAttempt: scope.attempt };
  await store.replace(key, encodeJson(times));
}
