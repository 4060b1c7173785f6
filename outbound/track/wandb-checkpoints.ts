/** Adapters of evaluated checkpoints as artifacts of type `lora`, with the aliases `step12`, `latest` and `best`. */
import { manifestKey } from '../../store/layout.ts';
import { PEFT_CONFIG_FILE, PEFT_WEIGHTS_FILE } from '../../store/records/peft-adapter.ts';
import { readManifest } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { EvalRow, ToldRow, ToldRun } from '../target.ts';
import { bestEvaluation } from './metric-names.ts';
import { shownName, trackerRunId } from './tracker-run.ts';
import { logArtifact } from './wandb-artifact.ts';
import type { WandbApi } from './wandb-graphql.ts';

export async function logCheckpoints(
  api: WandbApi,
  store: Store,
  told: ToldRun,
  rows: readonly ToldRow[],
): Promise<void> {
  for (const row of rows) if (row.kind === 'evaluation' && row.step > 0) await logCheckpoint(api, store, told, row);
}

/** A step that trained nothing has no checkpoint; a pruned one has no weights any more. */
async function logCheckpoint(api: WandbApi, store: Store, told: ToldRun, { branch, step }: EvalRow): Promise<void> {
  const place = { run: told.run.run, branch, step };
  if ((await store.read(manifestKey(place))) === null) return;
  const manifest = await readManifest(store, place);
  if (manifest === null || manifest.fullFineTuning === true || (await store.blobBytes(manifest.adapter)) === null)
    return;
  const isBest = bestEvaluation(told.evals)?.step === step;
  await logArtifact(api, {
    entity: told.memory['entity'] ?? '',
    project: told.memory['project'] ?? '',
    runId: trackerRunId(told),
    name: `${shownName(told).replaceAll('~', '-branch-')}-lora`,
    type: 'lora',
    metadata: { 'wandb.base_model': manifest.baseModel, step, adapter_sha256: manifest.adapter.sha256 },
    aliases: [`step${step}`, 'latest', ...(isBest ? ['best'] : [])],
    files: [
      { path: PEFT_CONFIG_FILE, bytes: await store.getBlob(manifest.adapterConfig) },
      { path: PEFT_WEIGHTS_FILE, bytes: await store.getBlob(manifest.adapter) },
    ],
    storageRegion: null,
  });
}
