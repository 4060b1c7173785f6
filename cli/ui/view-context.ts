/** Sources of a command's views: the store, the index with its cache, vocabularies, and Temporal's history. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Store } from '../../store/store.ts';
import type { ViewContext } from '../../views/context/context.ts';
import { openAttemptIndex } from '../../views/index/open-index.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { findStoreId, type ProjectPlace } from '../connections/server.ts';
import { vocabularySource } from './vocabulary-source.ts';

/** `history`: absent for what reads the store alone. */
export async function openViewContext(
  store: Store,
  { project, env }: ProjectPlace,
  history: () => ViewContext['readHistory'] = () => null,
): Promise<ViewContext> {
  const folder = await cacheOf(store, env);
  return {
    store,
    index: openAttemptIndex(store, folder),
    cacheFolder: folder,
    get readHistory() {
      return history();
    },
    readVocabulary: vocabularySource({ store, folder, project, env }),
    now: Date.now,
  };
}

/** Another store at the same place has another cache. */
async function cacheOf(store: Store, env: NodeJS.ProcessEnv): Promise<string | null> {
  const id = await findStoreId(store);
  if (id === null) return null;
  const name = createHash('sha256').update(`${store.uri}\n${id}`).digest('hex').slice(0, 32);
  return join(cacheFolder(env), 'ui', name);
}
