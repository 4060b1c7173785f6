/**
 * The MCP servers of this process: a shared one is started when an attempt needs it, started again after its death, and
 * ended when no attempt has used it for a while; an isolated one belongs to its attempt.
 */
import { availableParallelism } from 'node:os';
import pLimit from 'p-limit';

import { Connection } from './connection.ts';
import type { ServerSpec } from './server-spec.ts';

/** Hundreds of attempts that begin at once would start so slowly that each missed its deadline. */
const starting = pLimit(Math.max(2, availableParallelism()));
const shared = new Map<string, SharedServer>();

/** An attempt's hold on a server. */
export interface ServerLease {
  /** The connection in use, or a new one where that one is gone; `isNew` tells which. Not called twice at once. */
  readonly connect: () => Promise<{ connection: Connection; isNew: boolean }>;
  /** The attempt is over. Resolves once nothing of its own is left. */
  readonly release: () => Promise<void>;
}

export function leaseServer(spec: ServerSpec, folder: string): ServerLease {
  if (spec.isolate) return leaseIsolated(spec, folder);
  const key = JSON.stringify([folder, spec]);
  const server = shared.get(key) ?? new SharedServer(spec, folder, () => shared.delete(key));
  shared.set(key, server);
  return server.lease();
}

/** Ends what is idle now; what is in use ends with its attempts. */
export async function endIdleServers(): Promise<void> {
  await Promise.all([...shared.values()].map((server) => server.endIfIdle()));
}

function leaseIsolated(spec: ServerSpec, folder: string): ServerLease {
  let opening: Promise<Connection> | null = null;
  let isOver = false;
  const open = (): Promise<Connection> =>
    isOver ? Promise.reject(new Error('the attempt is over')) : Connection.open(spec, folder);
  return {
    connect: async () => {
      const current = await opening?.catch(() => null);
      if (current?.isUsable === true) return { connection: current, isNew: false };
      await current?.abandon();
      opening = starting(open);
      return { connection: await opening, isNew: true };
    },
    release: async () => {
      isOver = true;
      const current = await opening?.catch(() => null);
      await current?.abandon();
    },
  };
}

class SharedServer {
  readonly #spec: ServerSpec;
  readonly #folder: string;
  readonly #forget: () => void;
  #opening: Promise<Connection> | null = null;
  #leases = 0;
  #idle: NodeJS.Timeout | null = null;

  constructor(spec: ServerSpec, folder: string, forget: () => void) {
    this.#spec = spec;
    this.#folder = folder;
    this.#forget = forget;
  }

  lease(): ServerLease {
    this.#leases += 1;
    if (this.#idle !== null) clearTimeout(this.#idle);
    let isReleased = false;
    return {
      connect: () => this.#connect(),
      release: async () => {
        if (isReleased) return;
        isReleased = true;
        this.#leases -= 1;
        if (this.#leases === 0) this.#idle = setTimeout(() => void this.endIfIdle(), this.#spec.idleMs).unref();
      },
    };
  }

  async endIfIdle(): Promise<void> {
    if (this.#leases > 0) return;
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#forget();
    const current = await this.#opening?.catch(() => null);
    await current?.end();
  }

  async #connect(): Promise<{ connection: Connection; isNew: boolean }> {
    const before = this.#opening;
    const current = await before?.catch(() => null);
    if (current?.isUsable === true) return { connection: current, isNew: false };
    // Its end takes as long as its calls; a new one is begun in any case.
    current?.end().catch(() => undefined);
    // Another attempt may have begun a new one meanwhile.
    if (this.#opening === before) this.#opening = starting(() => Connection.open(this.#spec, this.#folder));
    return { connection: await this.#opening!, isNew: true };
  }
}
