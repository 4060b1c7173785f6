import { hostname } from 'node:os';

import { encodeJson } from '../store/json.ts';
import type { Dependencies } from './dependencies.ts';
import type { Scope } from './activity.ts';

/** Beside a write-once object, outside every hash: who made it, when, from which code. */
export async function writeTimes(
  { store }: Dependencies,
  key: string,
  scope: Scope,
  facts: { startedAt: number; endedAt: number; agentCodeSha256: string },
): Promise<void> {
  const seconds = (facts.endedAt - facts.startedAt) / 1000;
  const times = { seconds, ...facts, host: hostname(), pid: process.pid, activityAttempt: scope.attempt };
  await store.replace(key, encodeJson(times));
}
