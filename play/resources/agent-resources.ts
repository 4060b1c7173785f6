/** The resources of one agent in one process: those of the worker, and whatever a teardown could not end at once. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import pLimit from 'p-limit';
import { TemperError } from '../../core/contract/failures.ts';
import { RECORD_SCHEMA } from '../../core/contract/wire-constants.ts';
import { type Lease, type LeasePlace, Leases } from '../../store/records/groups/leases.ts';
import { endLease, NO_LEASES, type LeaseLog } from './end-lease.ts';
import type { HeldResource } from './held-resource.ts';
import { LeaseHolder } from './lease-holder.ts';
import type { Resource, Resources, ResourceScope } from './resource.ts';
import { ResourceSet, type NamedResource } from './resource-set.ts';
import type { Store } from '../../store/store.ts';

export interface ResourceLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface AgentResourcesOptions {
  readonly agent: string;
  readonly resources: Resources;
  /** Null: nothing is written down, for tests of agents. */
  readonly leases: Leases | null;
  readonly logger?: ResourceLogger;
}

/** Leases that are ended at the same time. */
export const ENDED_AT_ONCE = 8;
const RETRY_MS = 30_000;
const ID_BYTES = 8;

export class AgentResources {
  readonly #options: AgentResourcesOptions;
  /** Ended by `close` alone. */
  readonly #over = new AbortController();
  readonly #unended = new Set<HeldResource>();
  #retry: NodeJS.Timeout | undefined;
  #worker: Promise<ResourceSet> | null = null;
  #holder: Promise<LeaseHolder> | null = null;

  constructor(options: AgentResourcesOptions) {
    this.#options = options;
  }

  get log(): LeaseLog {
    return this.#options.leases ?? NO_LEASES;
  }

  of(scope: ResourceScope): NamedResource[] {
    return Object.entries(this.#options.resources).filter(([, resource]) => resource.scope === scope);
  }

  /** Set up by the first attempt that needs them; a setup that failed is tried again by the next one. */
  async worker(): Promise<ResourceSet> {
    const holder = await this.holder();
    this.#worker ??= ResourceSet.setUp({
      resources: this.of('worker'),
      frame: { resources: {}, signal: this.#over.signal },
      createLease: (name) => this.createLease({ name, scope: 'worker', holder: holder?.id ?? null }),
      log: this.log,
      keep: (held, failure) => this.keep(held, failure),
    });
    const setting = this.#worker;
    setting.catch(() => (this.#worker = this.#worker === setting ? null : this.#worker));
    return setting;
  }

  /** Null where nothing is written down. Another one where the former was taken for dead. */
  async holder(): Promise<LeaseHolder | null> {
    const { leases, logger, agent } = this.#options;
    if (leases === null) return null;
    this.#holder ??= beginHolder(leases);
    const beginning = this.#holder;
    beginning.catch(() => (this.#holder = null));
    const holder = await beginning;
    if (await holder.isHolding()) return holder;
    if (this.#holder === beginning) {
      logger?.warn({ agent }, 'this process was taken for dead, and its resources were ended; they are set up again');
      const former = this.#worker;
      [this.#holder, this.#worker] = [null, null];
      // Names are new for each setup: what others ended already is no error.
      await (await former?.catch(() => null))?.end();
      await holder.end();
    }
    return this.holder();
  }

  /** Throws where what an attempt was given may have been ended while it played: what it made of that is no data. */
  async checkHolder(holder: LeaseHolder | null, isFresh: () => boolean): Promise<void> {
    if (isFresh() && (holder === null || (await holder.isHolding()))) return;
    throw new TemperError(
      'StaleAttempt',
      'this process was suspended or cut off, and others may have ended its resources; the attempt is retried',
    );
  }

  createLease(facts: {
    name: string;
    scope: ResourceScope;
    holder: string | null;
    place?: LeasePlace | null;
    scenario?: string;
    attempt?: number;
  }): Lease {
    const { name, scope, holder, place = null, scenario = null, attempt = null } = facts;
    return {
      schema: RECORD_SCHEMA,
      id: `temper${randomBytes(ID_BYTES).toString('hex')}`,
      agent: this.#options.agent,
      resource: name,
      scope,
      holder: holder ?? '0'.repeat(2 * ID_BYTES),
      place,
      scenario,
      attempt,
      startedAt: new Date().toISOString(),
      host: hostname(),
      pid: process.pid,
    };
  }

  /** Ends leases of an earlier try of an activity: its process is gone, or has lost the activity. */
  async endLeft(place: LeasePlace): Promise<void> {
    const { leases, resources, logger } = this.#options;
    const limit = pLimit(ENDED_AT_ONCE);
    const end = async (left: { lease: Lease; data: unknown }): Promise<void> => {
      const { lease } = left;
      const resource = ownOf(resources, lease.resource);
      const failure =
        resource === null ? 'the agent has no such resource now' : await endLease(resource, left, this.log);
      const fields = { ...place, resource: lease.resource, lease: lease.id };
      if (failure === null) logger?.info(fields, 'ended a resource that an earlier try of the activity left');
      else logger?.warn({ ...fields, failure }, 'a resource that an earlier try of the activity left cannot be ended');
    };
    await Promise.all(((await leases?.list(place)) ?? []).map((left) => limit(() => end(left))));
  }

  /** Its lease stays; teardown is tried again while this process lives. */
  keep(held: HeldResource, failure: string): void {
    const { resource, id } = held.lease;
    this.#options.logger?.warn({ resource, lease: id, failure }, 'a resource could not be ended; it is tried again');
    this.#unended.add(held);
    this.#retry ??= setTimeout(() => void this.#retryUnended(), RETRY_MS).unref();
  }

  /** Ends what is left, once. What cannot be ended stays known by its lease. */
  async close(): Promise<void> {
    this.#over.abort(new Error('the worker ends'));
    clearTimeout(this.#retry);
    await (await this.#worker?.catch(() => null))?.end();
    await this.#endAgain();
    clearTimeout(this.#retry);
    await (await this.#holder?.catch(() => null))?.end();
  }

  async #retryUnended(): Promise<void> {
    await this.#endAgain();
    this.#retry = this.#unended.size === 0 ? undefined : setTimeout(() => void this.#retryUnended(), RETRY_MS).unref();
  }

  async #endAgain(): Promise<void> {
    const ending = [...this.#unended].map(async (held) => {
      if ((await held.end()) === null) this.#unended.delete(held);
    });
    await Promise.all(ending);
  }
}

export function ownOf(resources: Resources, name: string): Resource | null {
  return Object.hasOwn(resources, name) ? (resources[name] ?? null) : null;
}

async function beginHolder(leases: Leases): Promise<LeaseHolder> {
  const holder = new LeaseHolder(leases);
  await holder.begin();
  return holder;
}

/** With leases in the store; null for an agent without resources. */
export function openAgentResources(
  { name, resources }: { readonly name: string; readonly resources?: Resources },
  store: Store,
  logger?: ResourceLogger,
): AgentResources | null {
  if (resources === undefined) return null;
  const leases = new Leases(store, name);
  return new AgentResources({ agent: name, resources, leases, ...(logger && { logger }) });
}
