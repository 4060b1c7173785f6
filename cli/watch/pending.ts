/** Shows pending activities of a run while it is watched. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProjectPlace } from '../../operations/operation.ts';
import { readPending, type PendingOf } from '../../operations/pending/read-pending.ts';
import { tryServer } from '../../operations/server.ts';
import type { TemporalClient } from '../../workers/connection/connection.ts';
import type { Viewer } from './viewer.ts';

const ASK_EVERY_MS = 3000;

/** Shows pending activities until the signal is aborted. */
export async function showPending(
  server: TemporalClient,
  of: PendingOf,
  viewer: Pick<Viewer, 'pending'>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    viewer.pending(await readPending(server, of, ASK_EVERY_MS));
    await sleep(ASK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Same, but waits for a server to appear. Until then the viewer shows what the store has. */
export async function showAnyPending(
  place: ProjectPlace,
  of: PendingOf,
  viewer: Pick<Viewer, 'pending'>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const server = await tryServer(place, ASK_EVERY_MS);
    if (server === null) {
      await sleep(ASK_EVERY_MS, undefined, { signal }).catch(() => undefined);
      continue;
    }
    try {
      await showPending(server, of, viewer, signal);
    } finally {
      await server.close();
    }
  }
}
