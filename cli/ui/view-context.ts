/** Sources of a command's views: the store, the index with its cache, and vocabularies. */
import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { readVocabulary } from '../../store/records/runs/vocabulary.ts';
import type { Store } from '../../store/store.ts';
import type { ViewContext } from '../../views/context/context.ts';
import { openAttemptIndex } from '../../views/index/open-index.ts';
import { cacheFolder, projectFolders } from '../../workers/project/folders.ts';
import { makePrivateFolder } from '../../workers/project/own-file.ts';
import type { ProjectPlace } from '../../operations/operation.ts';
import { findStoreId } from '../../store/bytes/store-id.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { STORE_KEY } from '../../core/contract/wire-constants.ts';
import { RUNS_PREFIX } from '../../store/layout.ts';
import { childNames } from '../../store/records/children.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { UiContext } from './command.ts';

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

type Place = Pick<UiContext, 'project' | 'env' | 'cwd'> & { readonly flags: Pick<UiContext['flags'], 'store'> };

/** The store of `temper ui`: the project's, or another one, which needs no project. */
export async function openUiStore({ project, env, cwd, flags }: Place): Promise<Store> {
  if (flags.store === null) return openProjectStore(project, env);
  const uri = flags.store.includes('://') ? flags.store : resolve(cwd, flags.store);
  const store = await openStore(uri, { spoolFolder: projectFolders(project).spool });
  const isStore = (await store.read(STORE_KEY)) !== null || (await childNames(store, RUNS_PREFIX)).length > 0;
  if (isStore) return store;
  throw badConfig(
    `--store must be a store of Temper, and there is none at ${store.uri}; pass the folder or bucket that temper runs names, such as .temper/store`,
  );
}
