/** The Temporal server of a project, where one is running; commands that only read the store do without. */
import { TemperError } from '../../core/failures.ts';
import { configuredTarget, connectClient, type TemporalClient } from '../../workers/connection/connection.ts';
import { runningTarget } from '../../workers/local-stack/running-target.ts';
import type { Surroundings } from '../command-line/command.ts';

/** Where a command looks for the server, and with which settings. */
export type ProjectPlace = Pick<Surroundings, 'project' | 'env'>;

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
