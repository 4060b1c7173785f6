/** One teardown, by whoever does it: the process that set up, a retry on another worker, or `temper doctor leases`. */
import type { Lease, StoredLease } from '../../store/records/groups/leases.ts';
import type { Resource } from './resource.ts';

/** The record of leases: in a store, or nowhere. */
export interface LeaseLog {
  open(lease: Lease): Promise<void>;
  record(lease: Lease, data: unknown): Promise<void>;
  fail(lease: Lease, message: string): Promise<void>;
  close(lease: Lease): Promise<void>;
}

/** Nothing that a killed process would leave is found again: for tests of agents. */
export const NO_LEASES: LeaseLog = {
  open: () => Promise.resolve(),
  record: () => Promise.resolve(),
  fail: () => Promise.resolve(),
  close: () => Promise.resolve(),
};

const MAX_MESSAGE = 500;

/** Null once it has ended and its lease is gone; else why not, which is kept with the lease. */
export async function endLease(
  resource: Resource,
  { lease, data }: Pick<StoredLease, 'lease' | 'data'>,
  log: LeaseLog,
  value?: unknown,
): Promise<string | null> {
  try {
    await tearDown(resource, { id: lease.id, data }, value);
    await log.close(lease);
    return null;
  } catch (error) {
    return keepFailure(log, lease, shownError(error));
  }
}

/** The lease stays also where its failure cannot be written. */
export async function keepFailure(log: LeaseLog, lease: Lease, message: string): Promise<string> {
  const written = await log.fail(lease, message).then(
    () => '',
    (error: unknown) => ` (not recorded: ${shownError(error)})`,
  );
  return message + written;
}

async function tearDown(resource: Resource, held: { id: string; data: unknown }, value: unknown): Promise<void> {
  const limit = new AbortController();
  const { teardownTimeoutMs } = resource;
  const late = `teardown may take teardownTimeoutMs ${teardownTimeoutMs} ms, it took longer`;
  const timer = setTimeout(() => limit.abort(new Error(late)), teardownTimeoutMs);
  try {
    await unlessAborted(limit.signal, () => resource.teardown({ ...held, signal: limit.signal }, value));
  } finally {
    clearTimeout(timer);
  }
}

/** Rejects with the signal's reason as soon as it is aborted, whether or not the work heeds it. */
export async function unlessAborted<T>(signal: AbortSignal, work: () => T | Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([(async () => work())(), aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

export function shownError(error: unknown): string {
  return (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, MAX_MESSAGE);
}
