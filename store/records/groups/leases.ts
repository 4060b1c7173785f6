/**
 * Leases of one agent: what its attempts, groups and workers hold outside of Temper (a container, a database). A lease is
 * written before its resource is made, and removed once that has ended, so that a kill leaves nothing unknown. Beside
 * the leases stand the processes that hold them, which show by renewing their record that they live.
 */
import type { z } from 'zod';

import { badConfig, TemperError } from '../../../core/contract/failures.ts';
import { hashOf } from '../../../core/text/hashes.ts';
import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { decodeJson, encodeJson } from '../../bytes/json.ts';
import {
  holderEndedKey,
  holderKey,
  holderPrefix,
  holdersPrefix,
  leaseDataKey,
  leaseFailureKey,
  leaseKey,
  leasePrefix,
  LEASES_PREFIX,
  leasesPrefix,
} from '../../layout.ts';
import type { Store } from '../../store.ts';
import { childNames } from '../children.ts';
import {
  LEASE_ID,
  LeaseDataSchema,
  LeaseFailureSchema,
  LeaseFileSchema,
  parseStored,
  readStored,
} from '../file-schemas.ts';

export type Lease = z.output<typeof LeaseFileSchema>;

/** The activity that plays: its retry has the same. */
export type LeasePlace = NonNullable<Lease['place']>;

/** A lease with what became of it. */
export interface StoredLease {
  lease: Lease;
  /** JSON that setup recorded; null if nothing. */
  data: unknown;
  /** The last failure of teardown. */
  failure: { message: string; failedAt: string } | null;
}

/** Its record's text changes with each renewal; null if it is missing. */
export interface StoredHolder {
  renewal: string | null;
  isEnded: boolean;
}

const MAX_DATA_BYTES = 65_536;
const OWNER_CHARACTERS = 16;
const NO_PLACE = 'none';

export class Leases {
  readonly agent: string;
  readonly #store: Store;

  constructor(store: Store, agent: string) {
    this.#store = store;
    this.agent = agent;
  }

  async open(lease: Lease): Promise<void> {
    await this.#store.publish(leaseKey(this.#prefix(lease)), encodeJson(lease));
  }

  async record(lease: Lease, data: unknown): Promise<void> {
    const bytes = encodeJson({ schema: RECORD_SCHEMA, data });
    if (bytes.length > MAX_DATA_BYTES) throw tooLarge(lease, bytes.length);
    const { created } = await this.#store.publish(leaseDataKey(this.#prefix(lease)), bytes);
    if (!created) throw twice(lease);
  }

  async fail(lease: Lease, message: string): Promise<void> {
    // Another process may have ended it meanwhile.
    if ((await this.#store.read(leaseKey(this.#prefix(lease)))) === null) return;
    const file = { schema: RECORD_SCHEMA, message, failedAt: new Date().toISOString() };
    await this.#store.replace(leaseFailureKey(this.#prefix(lease)), encodeJson(file));
  }

  /** Its resource has ended. */
  async close(lease: Lease): Promise<void> {
    await this.#store.removeFolder(this.#prefix(lease));
  }

  /** All leases, or those of one place. */
  async list(place?: LeasePlace): Promise<StoredLease[]> {
    const owner = place === undefined ? '' : `${ownerOf(place)}.`;
    const names = (await childNames(this.#store, leasesPrefix(this.agent))).filter((name) => name.startsWith(owner));
    const read = names.filter((name) => LEASE_ID.test(idOf(name))).map((name) => this.#read(name));
    return (await Promise.all(read)).filter((lease) => lease !== null);
  }

  async holders(): Promise<Map<string, StoredHolder>> {
    const ids = await childNames(this.#store, holdersPrefix(this.agent));
    return new Map(await Promise.all(ids.map(async (id) => [id, await this.holder(id)] as const)));
  }

  async holder(id: string): Promise<StoredHolder> {
    const renewal = await this.#store.read(holderKey(this.agent, id));
    const ended = await this.#store.read(holderEndedKey(this.agent, id));
    return { renewal: renewal && Buffer.from(renewal).toString('utf8'), isEnded: ended !== null };
  }

  async renewHolder(id: string, facts: object): Promise<void> {
    await this.#store.replace(holderKey(this.agent, id), encodeJson({ schema: RECORD_SCHEMA, ...facts }));
  }

  /** A process that was only suspended finds this, and knows that its leases are no longer its own. */
  async endHolder(id: string): Promise<void> {
    const file = { schema: RECORD_SCHEMA, endedAt: new Date().toISOString() };
    await this.#store.publish(holderEndedKey(this.agent, id), encodeJson(file));
  }

  async removeHolder(id: string): Promise<void> {
    await this.#store.removeFolder(holderPrefix(this.agent, id));
  }

  async #read(name: string): Promise<StoredLease | null> {
    const prefix = `${leasesPrefix(this.agent)}/${name}`;
    const bytes = await this.#store.read(leaseKey(prefix));
    // It was ended since its folder was listed.
    if (bytes === null) return null;
    const lease = parseStored(LeaseFileSchema, decodeJson(bytes, leaseKey(prefix)), leaseKey(prefix));
    if (lease.id !== idOf(name) || lease.agent !== this.agent) throw moved(leaseKey(prefix));
    const recorded = await readStored(this.#store, leaseDataKey(prefix), LeaseDataSchema);
    return {
      lease,
      data: recorded?.data ?? null,
      failure: await readStored(this.#store, leaseFailureKey(prefix), LeaseFailureSchema),
    };
  }

  #prefix({ place, id }: Lease): string {
    return leasePrefix(this.agent, place === null ? NO_PLACE : ownerOf(place), id);
  }
}

/** Agents that have leases in this store, or had some. */
export function agentsWithLeases(store: Store): Promise<string[]> {
  return childNames(store, LEASES_PREFIX);
}

function ownerOf({ run, branch, step, part }: LeasePlace): string {
  return hashOf({ run, branch, step, part }).slice(0, OWNER_CHARACTERS);
}

const idOf = (name: string): string => name.slice(name.indexOf('.') + 1);

function tooLarge({ resource }: Lease, bytes: number): TemperError {
  return badConfig(
    `what the resource ${resource} records may have ${MAX_DATA_BYTES} bytes as JSON, it has ${bytes}; record only what teardown needs`,
  );
}

function twice({ resource }: Lease): TemperError {
  return badConfig(`the resource ${resource} may record data once, but did twice; record all of it in one call`);
}

function moved(key: string): TemperError {
  return new TemperError('StoreCorrupt', `${key} must name the agent and the id of its folder; remove the folder`);
}
