/** Sources of a command's views: the store, the index with its cache, and vocabularies. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { readVocabulary } from '../../store/records/vocabulary.ts';
import type { Store } from '../../store/store.ts';
import type { ViewContext } from '../../views/context/context.ts';
import { openAttemptIndex } from '../../views/index/open-index.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { makePrivateFolder } from '../../workers/project/own-file.ts';
import { findStoreId, type ProjectPlace } from '../../operations/server.ts';

export async function openViewContext(store: Store, { env }: Pick<ProjectPlace, 'env'>): Promise<ViewContext> {
  const folder = await cacheOf(store, env);
  return {
    store,
    index: openAttemptIndex(store, folder),
    cacheFolder: folder,
    readVocabulary: (run) => readVocabulary(store, run),
    now: Date.now,
  };
}

/**
 * Another store at the same place has another cache. It contains words of attempts, which the store's own modes may hide, so
 * it is closed to other users. Null where it cannot be: then the index lives as long as this process.
 */
async function cacheOf(store: Store, env: NodeJS.ProcessEnv): Promise<string | null> {
  const id = await findStoreId(store);
  if (id === null) return null;
  const name = createHash('sha256').update(`${store.uri}\n${id}`).digest('hex').slice(0, 32);
  const all = join(cacheFolder(env), 'ui');
  const folder = join(all, name);
  return makePrivateFolder(all) && makePrivateFolder(folder) ? folder : null;
}
