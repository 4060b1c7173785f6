/**
 * Processes that serve checkpoints, which no run names. Each shows in the store which ones, and renews its record as long as
 * it lives: what it serves is neither pruned nor deleted.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

import { z } from 'zod';

import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { encodeJson } from '../../bytes/json.ts';
import { serverKey, serverPrefix, SERVERS_PREFIX } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { readStored } from '../file-schemas.ts';

const RENEW_MS = 60_000;
/** Ages of records are told by the store, and this host's clock may differ by some minutes. */
export const DEAD_MS = 10 * RENEW_MS;

const ServerSchema = z.looseObject({
  schema: z.literal(RECORD_SCHEMA),
  command: z.string(),
  /** Names of its policies. */
  policies: z.array(z.string()),
  /** Run under whose name it records; null: none. */
  records: z.string().nullable(),
  host: z.string(),
  pid: z.int(),
});
type ServerFile = z.output<typeof ServerSchema>;

export interface ServerRecordOptions extends Pick<ServerFile, 'command' | 'records'> {
  readonly store: Store;
  /** Told once why the record cannot be written. */
  readonly warn: (line: string) => void;
}

export class ServerRecord {
  readonly #options: ServerRecordOptions;
  readonly #id = randomBytes(8).toString('hex');
  #policies: readonly string[] = [];
  #renewing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;
  #hasWarned = false;

  constructor(options: ServerRecordOptions) {
    this.#options = options;
  }

  /** Serving does not depend on it: a store may be read-only. */
  show(policies: readonly string[]): Promise<void> {
    this.#policies = policies;
    this.#timer ??= setInterval(() => void this.#renew(), RENEW_MS).unref();
    return this.#renew();
  }

  async end(): Promise<void> {
    if (this.#timer === null) return;
    clearInterval(this.#timer);
    this.#renewing = this.#renewing.then(() => this.#options.store.removeFolder(serverPrefix(this.#id)));
    await this.#renewing.catch((error: unknown) => this.#warn(error));
  }

  #renew(): Promise<void> {
    this.#renewing = this.#renewing.then(() => this.#write()).catch((error: unknown) => this.#warn(error));
    return this.#renewing;
  }

  async #write(): Promise<void> {
    const { store, command, records } = this.#options;
    const place = { host: hostname(), pid: process.pid };
    const file: ServerFile = { schema: RECORD_SCHEMA, command, policies: [...this.#policies], records, ...place };
    await store.replace(serverKey(this.#id), encodeJson(file));
  }

  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const reason = error instanceof Error ? error.message : String(error);
    this.#options.warn(`the store cannot tell others what is served, so that they may prune it: ${reason}`);
  }
}

/** Those that renewed their records lately; `by` names the process. */
export async function readServers(
  store: Store,
): Promise<(Pick<ServerFile, 'policies' | 'records'> & { by: string })[]> {
  const servers = [];
  for await (const { key, modifiedAtMs } of store.describe(SERVERS_PREFIX)) {
    if (Date.now() - modifiedAtMs > DEAD_MS) continue;
    const file = await readStored(store, key, ServerSchema);
    if (file !== null) servers.push({ ...file, by: `${file.command} (process ${file.pid} on ${file.host})` });
  }
  return servers;
}
