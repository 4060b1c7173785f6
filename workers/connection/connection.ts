/** Reaching a Temporal server: found as its own tools find it, with waits that end and say what they waited for. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Client,
  Connection,
  defaultGrpcRetryOptions,
  isGrpcServiceError,
  makeGrpcRetryInterceptor,
  type TLSConfig,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { isLoopback } from '../../core/names/addresses.ts';
import { definedVariables, unreadableProfile, type TemporalTarget } from './target.ts';
import { isIP } from 'node:net';
import { connect } from 'node:tls';

export interface TemporalClient extends TemporalTarget {
  readonly client: Client;
  readonly connection: Connection;
  close(): Promise<void>;
}

/** The command that asks starts and looks around for some seconds as well; fifteen were promised in all. */
const ANSWER_WITHIN_MS = 7_000;
const PAUSE_MS = 500;
/** DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE: the server is silent, busy or away; the question was fine. */
const PASSING_CODES: readonly number[] = [4, 8, 14];
/** PERMISSION_DENIED, UNAUTHENTICATED */
export const REFUSED_CODES: readonly number[] = [7, 16];

/** A client of `target`, with TLS and keys from profile and environment. Fails within fifteen seconds, saying what to do. */
export async function connectClient(
  target: TemporalTarget,
  env: NodeJS.ProcessEnv = process.env,
): Promise<TemporalClient> {
  const { apiKey, tls, metadata } = readCredentials(env);
  const credentials = {
    ...(tls === undefined ? {} : { tls }),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  const retries = createRetries();
  try {
    const connection = await Connection.connect({
      address: target.address,
      interceptors: [retries.interceptor],
      connectTimeout: ANSWER_WITHIN_MS,
      // `http_proxy` is for other hosts.
      ...(isLoopback(target.address.replace(/:\d+$/, '')) ? { channelArgs: { 'grpc.enable_http_proxy': 0 } } : {}),
      ...credentials,
    });
    return {
      ...target,
      connection,
      client: new Client({ connection, namespace: target.namespace }),
      close: () => retries.end(() => connection.close()),
    };
  } catch (cause) {
    throw await unreachable(target.address, tls ?? apiKey !== undefined, cause);
  }
}

type Retrying = ReturnType<typeof makeGrpcRetryInterceptor>;

/** Retries of the client: one that is due must not meet a closed connection, because nothing could catch its error. */
function createRetries() {
  const usual = defaultGrpcRetryOptions();
  let due = 0;
  let closeLate: (() => Promise<void>) | null = null;
  const closeIfEnding = () => {
    closeLate?.().catch(() => undefined);
  };
  const retrying = makeGrpcRetryInterceptor({
    retryableDecider: (attempt, status) => closeLate === null && usual.retryableDecider(attempt, status),
    delayFunction(attempt, status) {
      due++;
      return usual.delayFunction(attempt, status);
    },
  });
  const interceptor: Retrying = (options, nextCall) => {
    let isRetry = false;
    return retrying(options, (next) => {
      if (isRetry && --due === 0) setImmediate(closeIfEnding);
      isRetry = true;
      return nextCall(next);
    });
  };
  return {
    interceptor,
    /** No further ones. Closes at once, or when the last one that is due has begun: timers would be late on a busy machine. */
    async end(close: () => Promise<void>): Promise<void> {
      closeLate = close;
      if (due === 0) await close();
    },
  };
}

function readCredentials(env: NodeJS.ProcessEnv) {
  try {
    return loadClientConnectConfig({ overrideEnvVars: definedVariables(env) }).connectionOptions;
  } catch (cause) {
    throw unreadableProfile(cause);
  }
}

async function unreachable(address: string, tls: TLSConfig | boolean, cause: unknown): Promise<TemperError> {
  const call = failedCall(cause);
  const isRefused = call !== null && REFUSED_CODES.includes(call.code);
  const failure = isRefused ? null : await tlsFailure(address, tls);
  const port = /:(\d+)$/.exec(address)?.[1] ?? '7233';
  let message = `no Temporal server answers at ${address} (TEMPORAL_ADDRESS or temporal.toml); start one with temporal server start-dev --port ${port}, or remove the setting to let Temper start its own server`;
  if (isRefused)
    message = `the Temporal server at ${address} refused the request (${call.details || call.message}); check TEMPORAL_API_KEY or api_key in temporal.toml, and its rights`;
  if (failure !== null)
    message = `no TLS connection to the Temporal server at ${address} was made (${failure}); set TEMPORAL_TLS=true, or the TEMPORAL_TLS_* variables of its certificates, or correct tls in temporal.toml`;
  return badConfig(message, { cause });
}

export interface ConnectionPatience {
  /** How long a silent server is borne in all; null: until `signal`. */
  readonly limitMs: number | null;
  readonly signal?: AbortSignal;
  /** Called at each failed try. */
  readonly onSilence?: (sinceMs: number) => void;
}

/** Retries while the server is silent: a client's `result()` otherwise throws although workers continue. */
export async function patiently<T>(ask: () => Promise<T>, patience: ConnectionPatience): Promise<T> {
  let silentSince: number | null = null;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isPassing(error) || patience.signal?.aborted) throw error;
      silentSince ??= performance.now();
      const sinceMs = performance.now() - silentSince;
      if (patience.limitMs !== null && sinceMs > patience.limitMs) throw error;
      patience.onSilence?.(sinceMs);
    }
    await sleep(PAUSE_MS, undefined, patience.signal ? { signal: patience.signal } : {});
  }
}

/** Whether an error says only that the server did not answer. */
export function isPassing(error: unknown): boolean {
  const call = failedCall(error);
  return call !== null && PASSING_CODES.includes(call.code);
}

/** Describes a call that the server did not answer or refused; null for every other error. */
export function describeServerFailure(error: unknown): string | null {
  const call = failedCall(error);
  if (call === null) return null;
  const what = isPassing(call) ? 'is not responding' : 'refused a request';
  return `the Temporal server ${what} (${call.details || call.message}); see temper doctor, then run the same command again`;
}

interface FailedCall extends Error {
  readonly code: number;
  readonly details: string;
}

/** Client classes hide the call's error in `cause`. */
export function failedCall(error: unknown): FailedCall | null {
  for (let current = error; current instanceof Error; current = current.cause) {
    if (isGrpcServiceError(current)) return current;
  }
  return null;
}

const HANDSHAKE_WITHIN_MS = 2000;
const REFUSED_WITHIN_MS = 5000;
const NO_TLS = 'it takes TLS alone, and none is configured';

/** `config`: false if none is configured. Null if TLS is not the reason: nobody answers, or what answers is fine. */
function tlsFailure(address: string, config: TLSConfig | boolean): Promise<string | null> {
  const [, host = '', port = '7233'] = /^\[?([^\]]*?)\]?(?::(\d+))?$/.exec(address) ?? [];
  const { serverNameOverride, serverRootCACertificate, clientCertPair } = typeof config === 'boolean' ? {} : config;
  const pem = (bytes: Uint8Array | null | undefined) => (bytes ? Buffer.from(bytes) : undefined);
  return new Promise<string | null>((resolve) => {
    const socket = connect({
      host,
      port: Number(port),
      servername: serverNameOverride ?? (isIP(host) === 0 ? host : ''),
      ca: pem(serverRootCACertificate),
      cert: pem(clientCertPair?.crt),
      key: pem(clientCertPair?.key),
      ALPNProtocols: ['h2'],
      rejectUnauthorized: config !== false,
      timeout: HANDSHAKE_WITHIN_MS,
    });
    const end = (reason: string | null) => {
      resolve(reason);
      socket.destroy();
    };
    // With TLS 1.3 a server refuses a certificate after this.
    socket.on('secureConnect', () => (config === false ? end(NO_TLS) : socket.setTimeout(REFUSED_WITHIN_MS)));
    socket.on('error', (error: NodeJS.ErrnoException & { reason?: string }) => {
      if (config === false) end(error.code?.includes('ALERT') ? NO_TLS : null);
      else end(['connect', 'getaddrinfo'].includes(error.syscall ?? '') ? null : (error.reason ?? error.message));
    });
    for (const event of ['data', 'close', 'timeout']) socket.on(event, () => end(null));
  }).catch((error: unknown) => (error as Error).message);
}

const DESCRIBED_WITHIN_MS = 10_000;

/** False for one that has ended, and for one that the server does not know any more. Throws if the server does not answer. */
export async function isWorkflowRunning(client: Client, workflowId: string): Promise<boolean> {
  try {
    const handle = client.workflow.getHandle(workflowId);
    const { status } = await client.withDeadline(Date.now() + DESCRIBED_WITHIN_MS, () => handle.describe());
    return status.name === 'RUNNING' || status.name === 'CONTINUED_AS_NEW';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
