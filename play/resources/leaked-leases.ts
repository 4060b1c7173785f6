/** Finds leases whose holder is dead, and ends them: what no retry will find. */
import pLimit from 'p-limit';

import type { Leases, StoredHolder, StoredLease } from '../../store/records/groups/leases.ts';
import { ENDED_AT_ONCE, ownOf } from './agent-resources.ts';
import { endLease } from './end-lease.ts';
import type { Resources } from './resource.ts';

/**
 * - `in use`: by a process that lives, or that nobody has watched long enough;
 * - `not ended`: a teardown failed, and its process, which lives, tries again;
 * - `leaked`: its process is dead.
 */
type LeaseState = 'in use' | 'not ended' | 'leaked';

export interface SeenLease extends StoredLease {
  readonly state: LeaseState;
}

/** Looks at one agent's leases again and again, `WATCH_MS` apart: a holder that did not renew between is dead. */
export class LeaseWatch {
  readonly #leases: Leases;
  #seen = new Map<string, string>();

  constructor(leases: Leases) {
    this.#leases = leases;
  }

  async look(): Promise<{ leases: SeenLease[]; deadHolders: string[] }> {
    const before = this.#seen;
    // A look that fails tells nothing: the next one begins anew.
    this.#seen = new Map();
    // Leases first: a process writes its record before its first lease.
    const stored = await this.#leases.list();
    const holders = await this.#leases.holders();
    for (const [id, { renewal }] of holders) if (renewal !== null) this.#seen.set(id, renewal);
    const isDead = (id: string): boolean => {
      const holder = holders.get(id);
      return isGone(holder) || holder?.renewal === before.get(id);
    };
    const leases = stored.map((each): SeenLease => {
      const state = isDead(each.lease.holder) ? 'leaked' : each.failure === null ? 'in use' : 'not ended';
      return { ...each, state };
    });
    return { leases, deadHolders: [...holders.keys()].filter(isDead) };
  }
}

export interface EndedLease extends SeenLease {
  /** Null where it was ended. */
  readonly problem: string | null;
}

/**
 * Ends leases, and forgets dead holders that have none left. A process that was only suspended finds that it was taken
 * for dead, and begins anew.
 */
export async function endLeases(
  leases: Leases,
  resources: Resources,
  found: readonly SeenLease[],
  deadHolders: readonly string[],
): Promise<EndedLease[]> {
  for (const holder of deadHolders) await leases.endHolder(holder);
  const limit = pLimit(ENDED_AT_ONCE);
  const end = async (seen: SeenLease): Promise<EndedLease> => {
    const resource = ownOf(resources, seen.lease.resource);
    const missing = `the agent has no resource ${seen.lease.resource} now`;
    return { ...seen, problem: resource === null ? missing : await endLease(resource, seen, leases) };
  };
  const ended = await Promise.all(found.map((seen) => limit(() => end(seen))));
  const left = new Set((await leases.list()).map(({ lease }) => lease.holder));
  for (const holder of deadHolders) if (!left.has(holder)) await leases.removeHolder(holder);
  return ended;
}

function isGone(holder: StoredHolder | undefined): boolean {
  return holder === undefined || holder.isEnded || holder.renewal === null;
}
