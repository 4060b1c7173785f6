import { openStore } from '../../store/bytes/open-store.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig, type TemperConfig } from './config.ts';
import { projectFolders, storeUri } from '../project/folders.ts';

/** The store that TEMPER_STORE or temporal.config.ts names, or the project's own. */
export async function openProjectStore(project: string, env: NodeJS.ProcessEnv): Promise<Store> {
  return openConfiguredStore(project, await loadConfig(project, env));
}

export function openConfiguredStore(project: string, { store }: Pick<TemperConfig, 'store'>): Promise<Store> {
  const folders = projectFolders(project);
  return openStore(storeUri(store, folders), { spoolFolder: folders.spool });
}
