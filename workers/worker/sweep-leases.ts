/** Ends what dead workers of an agent have left, as long as this one lives: nobody else may come to look. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Agent } from '../../play/agent.ts';
import { WATCH_MS } from '../../play/resources/lease-holder.ts';
import { endLeases, LeaseWatch } from '../../play/resources/leaked-leases.ts';
import { Leases } from '../../store/records/leases.ts';
import type { Store } from '../../store/store.ts';
import type { Logger } from './logs.ts';

/** Between two tries of a teardown that fails. */
const RETRY_MS = 60_000;

export async function sweepLeases({ name, resources }: Agent, store: Store, logger: Logger, signal: AbortSignal) {
  if (resources === undefined) return;
  const leases = new Leases(store, name);
  const watch = new LeaseWatch(leases);
  const triedAt = new Map<string, number>();
  const sweep = async (): Promise<void> => {
    const { leases: seen, deadHolders } = await watch.look();
    const isDue = (id: string) => performance.now() - (triedAt.get(id) ?? -Infinity) > RETRY_MS;
    const leaked = seen.filter(({ state, lease }) => state === 'leaked' && isDue(lease.id));
    for (const { lease } of leaked) triedAt.set(lease.id, performance.now());
    for (const { lease, problem } of await endLeases(leases, resources, leaked, deadHolders)) {
      const fields = { lease: lease.id, resource: lease.resource, run: lease.place?.run ?? null };
      if (problem === null) logger.info(fields, 'ended a resource of a dead worker');
      else logger.warn({ ...fields, problem }, 'a resource of a dead worker cannot be ended; it is tried again');
    }
  };
  while (!signal.aborted) {
    await sweep().catch((error: unknown) => logger.warn({ error: String(error) }, 'leases cannot be read'));
    await sleep(WATCH_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
