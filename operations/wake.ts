/** Tells a run that waits for rewards, if a server answers. The rewards are in the store in any case. */
import type { Store } from '../store/store.ts';
import { wakeRun } from '../workers/rewards/wake-run.ts';
import type { ProjectPlace } from './operation.ts';
import { tryServer } from './server.ts';

const SERVER_WITHIN_MS = 3000;

/** Null if no server answers; false if the run is not running there. */
export async function wakeOverServer(place: ProjectPlace, store: Store, run: string): Promise<boolean | null> {
  const server = await tryServer(place, SERVER_WITHIN_MS);
  if (server === null) return null;
  try {
    return await wakeRun(server.client, await store.id(), run);
  } catch {
    return null;
  } finally {
    await server.close();
  }
}
