/** Connections to a project's Temporal server. Commands that only read the store work without one. */
import { badConfig, type TemperError } from '../core/contract/failures.ts';
import { runningTarget } from '../workers/local-stack/running-stack.ts';
import { connectClient, type TemporalClient } from '../workers/connection/connection.ts';
import { configuredTarget } from '../workers/connection/target.ts';
import type { ProjectPlace } from './operation.ts';

/** Longest wait for an answer of the server, or for a worker that takes an update. */
export const ANSWER_WITHIN_MS = 20_000;

/** Connects, or fails with what to start. */
export async function requireServer({ project, env }: ProjectPlace): Promise<TemporalClient> {
  const target = runningTarget(project, env);
  if (target === null) throw noServer();
  try {
    return await connectClient(target, env);
  } catch (cause) {
    // The local stack is just ending: the connection's error would name an address that the user never set.
    throw configuredTarget(env) === null ? noServer(cause) : cause;
  }
}

function noServer(cause?: unknown): TemperError {
  const message =
    'no local stack is running in this project, and TEMPORAL_ADDRESS is not set; start a local stack with temper dev or temper train';
  return badConfig(message, { cause });
}

/** Connects for commands that work without a server; null if nothing answers in time. */
export async function tryServer({ project, env }: ProjectPlace, withinMs: number): Promise<TemporalClient | null> {
  const target = runningTarget(project, env);
  if (target === null) return null;
  const connecting = connectClient(target, env).catch(() => null);
  const late = new Promise<null>((resolve) => setTimeout(resolve, withinMs, null).unref());
  const client = await Promise.race([connecting, late]);
  if (client === null) connecting.then((other) => other?.close()).catch(() => undefined);
  return client;
}
