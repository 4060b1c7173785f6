/** Reaching a Temporal server: found as its own tools find it, with waits that end and say what they waited for. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Client,
  Connection,
  defaultGrpcRetryOptions,
  isGrpcServiceError,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { badConfig, type TemperError } from '../../core/failures.ts';
import { isLoopback } from '../../core/loopback.ts';
import { definedVariables, type TemporalTarget } from './target.ts';

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

/** A client of `target`, with TLS and keys from profile and environment. Fails within fifteen seconds, saying what to do. */
export async function connectClient(
  target: TemporalTarget,
  env: NodeJS.ProcessEnv = process.env,
): Promise<TemporalClient> {
  const { connectionOptions } = loadClientConnectConfig({ overrideEnvVars: definedVariables(env) });
  const { apiKey, tls, metadata } = connectionOptions;
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
      async close() {
        const waitMs = retries.end();
        if (waitMs === 0) await connection.close();
        else {
          setTimeout(() => {
            connection.close().catch(() => undefined);
          }, waitMs).unref();
        }
      },
    };
  } catch (cause) {
    throw unreachable(target.address, cause);
  }
}

const RETRY_STARTS_WITHIN_MS = 100;

/** Retries of the client: one that is due must not meet a closed connection, because nothing could catch its error. */
function createRetries() {
  const usual = defaultGrpcRetryOptions();
  let isEnding = false;
  let lastAt = -Infinity;
  return {
    interceptor: makeGrpcRetryInterceptor({
      retryableDecider: (attempt, status) => !isEnding && usual.retryableDecider(attempt, status),
      delayFunction(attempt, status) {
        const delayMs = usual.delayFunction(attempt, status);
        lastAt = Math.max(lastAt, performance.now() + delayMs + RETRY_STARTS_WITHIN_MS);
        return delayMs;
      },
    }),
    /** No further ones; returns for how long one may be due. */
    end(): number {
      isEnding = true;
      return Math.max(0, Math.ceil(lastAt - performance.now()));
    },
  };
}

function unreachable(address: string, cause: unknown): TemperError {
  const port = /:(\d+)$/.exec(address)?.[1] ?? '7233';
  return badConfig(
    `no Temporal server answers at ${address} (TEMPORAL_ADDRESS or temporal.toml); start one with temporal server start-dev --port ${port}, or remove the setting to let Temper start its own server`,
    { cause },
  );
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
function failedCall(error: unknown): FailedCall | null {
  for (let current = error; current instanceof Error; current = current.cause) {
    if (isGrpcServiceError(current)) return current;
  }
  return null;
}
