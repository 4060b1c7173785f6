import { openStore } from '../../store/bytes/open-store.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config.ts';
import { projectFolders, storeUri } from '../../workers/folders.ts';

/** The store that TEMPER_STORE or temporal.config.ts names, or the project's own. */
export async function openProjectStore(project: string, env: NodeJS.ProcessEnv): Promise<Store> {
  const { store } = await loadConfig(project, env);
  return openStore(storeUri(store, projectFolders(project)));
}
