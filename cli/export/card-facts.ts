/** Facts of a model card, from the store. */
import { HUB_PREFIX } from '../../core/wire-constants.ts';
import { listSteps, readCommitted } from '../../store/records/checkpoints.ts';
import type { TrainedPolicy } from '../../store/records/find-policy.ts';
import { readEval } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { isBuiltIn, sourceOfName } from '../../workers/base-models/base-model.ts';
import { knownModels } from '../../workers/base-models/known-models.ts';
import { trainedBase } from '../../workers/config/loaded-base.ts';
import type { ExportContext } from './command.ts';
import { readLineage } from './lineage.ts';
import type { Converted } from './merge.ts';
import type { BaseFacts, CardFacts, CardFormat } from './model-card.ts';

/** Path below Temper's package; a name with a dash is a folder beside the first one (gpu-worker/temper_gpu/model/models.py). */
const POCKET_FOLDERS = 'node_modules/temper-rl/gpu-worker/temper_gpu/pocket/';

export async function readCardFacts(
  store: Store,
  policy: TrainedPolicy,
  { format, converted }: { readonly format: CardFormat; readonly converted: Converted | null },
  { project, env }: Pick<ExportContext, 'project' | 'env'>,
): Promise<CardFacts> {
  const { checkpoint, manifest, config, file } = policy;
  const { run, branch, step } = checkpoint;
  const places = (await listSteps(store, run)).filter((place) => place.branch === branch);
  const own = (await readCommitted(store, places)).find((committed) => committed.step === step);
  const base = trainedBase(manifest);
  const known = knownModels(project, await loadConfig(project, env));
  return {
    policy: policy.name,
    run,
    agent: config.agent,
    step,
    steps: config.steps,
    base: {
      ...describeBase(manifest.baseModel, known, converted),
      sha256: manifest.baseModelSha256,
      unpackedTo: base.loadIn4bit ? base.dtype : null,
    },
    chatTemplateSha256: config.rollout.chatTemplateSha256 ?? null,
    lora: config.train.lora,
    adapterSha256: policy.adapter.sha256,
    manifestSha256: checkpoint.manifestSha256,
    temperVersion: file.versions['temper'] ?? null,
    metrics: manifest.metrics,
    evaluation: own?.evaluation ?? null,
    evalBefore: await readEval(store, { run, branch: 0, step: 0 }),
    lineage: await readLineage(store, checkpoint),
    format,
    merged: format === 'mlx' ? null : converted,
  };
}

/** Hides paths of this machine. */
function describeBase(
  name: string,
  known: Readonly<Record<string, string>>,
  converted: Converted | null,
): Pick<BaseFacts, 'name' | 'hubId' | 'revision' | 'packageFolder'> {
  // A name with a commit or a hash of a listing locates the model, whichever machine trained on it.
  const source = name.includes('@') ? sourceOfName(name) : known[name];
  const hub = source?.startsWith(HUB_PREFIX) ? source.slice(HUB_PREFIX.length).split('@', 2) : [];
  const [hubId = null, revision = converted?.revision ?? null] = hub;
  const packageFolder =
    source === undefined && isBuiltIn(name) ? `${POCKET_FOLDERS}${name.replace('pocket', 'model')}` : null;
  return { name, hubId, revision, packageFolder };
}
