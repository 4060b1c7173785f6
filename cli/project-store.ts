import { openStore } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import { loadConfig } from '../workers/config.ts';
import { projectFolders, storeUri } from '../workers/folders.ts';

/** The store that temporal.config.ts names, or the project's own. */
export async function openProjectStore(project: string): Promise<Store> {
  const { store } = await loadConfig(project);
  return openStore(storeUri(store, projectFolders(project)));
}
