/** The store of `temper ui`: the project's, or another one, which needs no project. */
import { resolve } from 'node:path';
import { openStore } from '../../store/bytes/open-store.ts';
import { STORE_KEY } from '../../core/wire-constants.ts';
import { RUNS_PREFIX } from '../../store/layout.ts';
import { childNames } from '../../store/records/children.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { projectFolders } from '../../workers/project/folders.ts';
import { UsageError } from '../command-line/errors.ts';
import type { UiContext } from './command.ts';

type Place = Pick<UiContext, 'project' | 'env' | 'cwd'> & { readonly flags: Pick<UiContext['flags'], 'store'> };

export async function openUiStore({ project, env, cwd, flags }: Place): Promise<Store> {
  if (flags.store === null) return openProjectStore(project, env);
  const uri = flags.store.includes('://') ? flags.store : resolve(cwd, flags.store);
  const store = await openStore(uri, { spoolFolder: projectFolders(project).spool });
  const isStore = (await store.read(STORE_KEY)) !== null || (await childNames(store, RUNS_PREFIX)).length > 0;
  if (isStore) return store;
  throw new UsageError(
    `--store must be a store of Temper, and there is none at ${store.uri}; pass the folder or bucket that temper runs names, such as .temper/store`,
  );
}
