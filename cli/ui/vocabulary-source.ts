/** Vocabularies of runs' base models: the store's, or for runs from before it had them, the one of a model on this machine. */
import { setTimeout as sleep } from 'node:timers/promises';
import { readStored, RunFileSchema } from '../../store/records/file-schemas.ts';
import { readVocabulary } from '../../store/records/vocabulary.ts';
import { runKey } from '../../store/layout.ts';
import type { Store } from '../../store/store.ts';
import type { ViewContext } from '../../views/context/context.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import type { ProjectPlace } from '../connections/server.ts';

/** A Python that reads a tokenizer takes some seconds; without its answer, tokens are shown by their ids. */
const WITHIN_MS = 20_000;

interface Place extends ProjectPlace {
  readonly store: Store;
  /** Folder for vocabularies that are made; null: none are. */
  readonly folder: string | null;
}

/** Needed for runs from before stores had vocabularies alone. */
async function loadReader() {
  const [{ sourceOfName }, { findLocalModel }, { makeVocabulary }] = await Promise.all([
    import('../../workers/base-models/base-model.ts'),
    import('../planning/base-model.ts'),
    import('../../workers/python/read-vocabulary.ts'),
  ]);
  return { sourceOfName, findLocalModel, makeVocabulary };
}

export function vocabularySource({ store, folder, project, env }: Place): ViewContext['readVocabulary'] {
  const make = async (run: string) => {
    const file = await readStored(store, runKey(run), RunFileSchema);
    if (file === null || folder === null) return null;
    const { baseModel } = file.config;
    const { sourceOfName, findLocalModel, makeVocabulary } = await loadReader();
    // A model of the hub may be in its cache, also where no project has registered it.
    const ofHub = baseModel.includes('/') ? { source: sourceOfName(baseModel) } : null;
    const model = (await findLocalModel(baseModel, {}, { project, env })) ?? ofHub;
    const options = { env, cache: cacheFolder(env), onEvent: () => undefined };
    return model === null ? null : makeVocabulary({ baseModel, source: model.source, folder }, options);
  };
  return async (run) => {
    const stored = await readVocabulary(store, run);
    if (stored !== null) return stored;
    // A failure costs readable text alone: tokens are shown by their ids.
    return Promise.race([make(run).catch(() => null), sleep(WITHIN_MS, null, { ref: false })]);
  };
}
