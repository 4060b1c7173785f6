/** The Temporal server of a project, where one is running; commands that only read the store do without. */
import { TemperError } from '../../core/failures.ts';
import { STORE_KEY } from '../../core/wire-constants.ts';
import type { Store } from '../../store/store.ts';
import { configuredTarget, connectClient, type TemporalClient } from '../../workers/connection.ts';
import { runningTarget } from '../../workers/local-stack/running-target.ts';
import type { CommandEnvironment } from '../command-line/command.ts';

/** Where a command looks for the server, and with which settings. */
export type ProjectPlace = Pick<CommandEnvironment, 'project' | 'env'>;

/** Longest wait for an answer of the server, or for a worker that takes an update. */
export const ANSWER_WITHIN_MS = 20_000;

/** For commands that steer a run. */
export async function requireServer({ project, env }: ProjectPlace): Promise<TemporalClient> {
  const target = runningTarget(project, env);
  if (target === null) throw noServer();
  try {
    return await connectClient(target, env);
  } catch (cause) {
    // A local stack that is just ending: nobody set the address that the message of the connection speaks of.
    throw configuredTarget(env) === null ? noServer(cause) : cause;
  }
}

function noServer(cause?: unknown): TemperError {
  const message =
    'no local stack is running in this project, and TEMPORAL_ADDRESS is not set; start a local stack with temper dev or temper train';
  return new TemperError('BadConfig', message, { cause });
}

/** For commands that can do without: null where nothing answers in time. */
export async function tryServer({ project, env }: ProjectPlace, withinMs: number): Promise<TemporalClient | null> {
  const target = runningTarget(project, env);
  if (target === null) return null;
  const connecting = connectClient(target, env).catch(() => null);
  const late = new Promise<null>((resolve) => setTimeout(resolve, withinMs, null).unref());
  const client = await Promise.race([connecting, late]);
  if (client === null) void connecting.then((other) => other?.close());
  return client;
}

/** Null where nothing was ever stored: a question about a run must not make a store. */
export async function findStoreId(store: Pick<Store, 'id' | 'read'>): Promise<string | null> {
  return (await store.read(STORE_KEY)) === null ? null : store.id();
}
