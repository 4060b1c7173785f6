/** The resources of one scope that live and end together. */
import type { Lease } from '../../store/records/groups/leases.ts';
import type { LeaseLog } from './end-lease.ts';
import { HeldResource, type SetupFrame } from './held-resource.ts';
import type { Resource } from './resource.ts';

export type NamedResource = readonly [name: string, resource: Resource];

export interface SetOptions {
  readonly resources: readonly NamedResource[];
  readonly frame: SetupFrame;
  readonly createLease: (name: string, resource: Resource) => Lease;
  readonly log: LeaseLog;
  /** Told of each that teardown could not end. */
  readonly keep: (held: HeldResource, failure: string) => void;
}

export class ResourceSet {
  readonly #options: SetOptions;
  readonly #held: HeldResource[] = [];
  #values: Record<string, unknown>;

  private constructor(options: SetOptions) {
    this.#options = options;
    this.#values = { ...options.frame.resources };
  }

  /** In order, each with the values of those before it. If one fails, those before it are ended. */
  static async setUp(options: SetOptions): Promise<ResourceSet> {
    const set = new ResourceSet(options);
    try {
      for (const [name, resource] of options.resources) await set.#add(name, resource);
      return set;
    } catch (error) {
      await set.end();
      throw error;
    }
  }

  /** Those of wider scopes included. */
  get values(): Readonly<Record<string, unknown>> {
    return this.#values;
  }

  /** In the opposite order. Never rejects. */
  async end(): Promise<void> {
    for (let held = this.#held.pop(); held !== undefined; held = this.#held.pop()) {
      const failure = await held.end();
      if (failure !== null) this.#options.keep(held, failure);
    }
  }

  async #add(name: string, resource: Resource): Promise<void> {
    const { createLease, log, frame } = this.#options;
    const held = new HeldResource(resource, createLease(name, resource), log);
    this.#held.push(held);
    const value = await held.setUp({ ...frame, resources: this.#values });
    this.#values = { ...this.#values, [name]: value };
  }
}
