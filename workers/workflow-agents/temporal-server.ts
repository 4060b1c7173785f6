/** Connections to the Temporal servers of users' workers: one for each server and process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type WorkflowClientInterceptor } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { failedCall, isPassing, REFUSED_CODES } from '../connection/connection.ts';

export interface ServerOptions {
  readonly address?: string | undefined;
  readonly namespace?: string | undefined;
  readonly profile?: string | undefined;
  /** Checked by Temporal when it is used. */
  readonly dataConverter?: object | undefined;
}

export interface TemporalServer {
  readonly connection: NativeConnection;
  readonly namespace: string;
  /** Names the server in messages. */
  readonly name: string;
  readonly dataConverter: DataConverter | undefined;
}

/** Told what does not answer, and null once it does. */
export type OnSilence = (reason: string | null) => void;

const PAUSE_MS = 1000;
const connections = new Map<string, Promise<NativeConnection>>();

/** Waits for a server that does not answer until `signal`. */
export async function connectServer(
  options: ServerOptions,
  onSilence: OnSilence,
  signal: AbortSignal,
): Promise<TemporalServer> {
  const { profile, dataConverter } = options;
  const configured = readProfile(profile);
  const { connectionOptions } = configured;
  const address = options.address ?? connectionOptions.address ?? 'localhost:7233';
  const namespace = options.namespace ?? configured.namespace ?? 'default';
  const key = JSON.stringify([address, profile]);
  const connection = await answered(
    () => {
      const connecting = connections.get(key) ?? connect({ ...connectionOptions, address });
      connections.set(key, connecting);
      connecting.catch(() => connections.delete(key));
      return connecting;
    },
    { name: address, onSilence, signal },
  );
  return {
    connection,
    namespace,
    name: `${address} (namespace ${namespace})`,
    dataConverter,
  };
}

/** A connection on which a worker could not be created takes no second one for the same queue. */
export function forgetServer({ connection }: TemporalServer): void {
  for (const [key, connecting] of connections)
    connecting.then(
      (each) => each === connection && connections.delete(key),
      // Whoever waits for it forgets it.
      () => undefined,
    );
}

function readProfile(profile: string | undefined) {
  try {
    // A profile that is named is meant: the environment names the server of the run.
    return loadClientConnectConfig(profile === undefined ? {} : { profile, disableEnv: true });
  } catch (cause) {
    throw badConfig(
      `the Temporal profile of workflowAgent could not be read (${String(cause)}); correct temporal.toml`,
      { cause },
    );
  }
}

function connect(options: Parameters<typeof NativeConnection.connect>[0]): Promise<NativeConnection> {
  quietRuntime();
  return NativeConnection.connect(options);
}

/** Signals end the command that plays, and not the workers in it. A worker process has installed its own. */
function quietRuntime(): void {
  try {
    Runtime.install({
      shutdownSignals: [],
      logger: new DefaultLogger('ERROR'),
      telemetryOptions: { logging: { forward: {}, filter: { core: 'ERROR', other: 'ERROR' } } },
    });
  } catch {
    // It is installed.
  }
}

export function clientOf(
  { connection, namespace, dataConverter }: TemporalServer,
  interceptors: readonly WorkflowClientInterceptor[] = [],
): Client {
  return new Client({
    connection,
    namespace,
    ...(dataConverter && { dataConverter }),
    interceptors: { workflow: [...interceptors] },
  });
}

export interface Patience {
  /** The server's, for messages. */
  readonly name: string;
  readonly onSilence: OnSilence;
  readonly signal: AbortSignal;
}

/** Asks until the server answers, and the workflow; throws BadConfig where the server refuses the caller. */
export async function answered<T>(ask: () => Promise<T>, { name, onSilence, signal }: Patience): Promise<T> {
  for (let isSilent = false; ; isSilent = true) {
    try {
      const answer = await ask();
      if (isSilent) onSilence(null);
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      const reason = isNotReady(error)
        ? NOT_READY
        : isSilence(error)
          ? `the Temporal server ${name} does not answer`
          : null;
      if (reason === null) throw refused(error, name) ?? error;
      onSilence(reason);
    }
    await sleep(PAUSE_MS, undefined, { signal });
  }
}

/** The native connection has errors of its own where no server is found. */
function isSilence(error: unknown): boolean {
  return isPassing(error) || (isTransportError(error) && !REFUSED.test(error.message));
}

function isTransportError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'TransportError';
}

/** The answer to a worker that is created, as text. */
const REFUSED = /code: (NotFound|PermissionDenied|Unauthenticated|InvalidArgument)/;

const NOT_READY = 'the workflow does not answer: its task failed or took too long; see the log of its worker';
/** FAILED_PRECONDITION, ABORTED: the task of a workflow, in which it would take an update, is done again. */
const NOT_READY_CODES: readonly number[] = [9, 10];

function isNotReady(error: unknown): boolean {
  const cause = failedCall(error);
  return cause !== null && NOT_READY_CODES.includes(cause.code);
}

/** NOT_FOUND says so of a namespace, too. */
const NOT_FOUND = 5;

function refused(error: unknown, name: string): TemperError | null {
  if (isTransportError(error)) return refusal(error, name, error.message.split(': Status ', 1)[0]!);
  const cause = failedCall(error);
  if (cause === null) return null;
  const isNamespace = cause.code === NOT_FOUND && /namespace/i.test(cause.details);
  if (!REFUSED_CODES.includes(cause.code) && !isNamespace) return null;
  return refusal(error, name, cause.details || cause.message);
}

function refusal(cause: unknown, name: string, reason: string): TemperError {
  const rule = `the Temporal server ${name} must take workflows of workflowAgent, it refused (${reason})`;
  return badConfig(`${rule}; correct address, namespace or profile`, { cause });
}
