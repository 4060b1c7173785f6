/** Facts of a model card, from the store. */
import type { Checkpoint } from '../../core/contract/contract.ts';
import { formatSteps } from '../../core/reports/format.ts';
import { planLineage } from '../../core/names/lineage.ts';
import { policyName } from '../../core/names/policy-name.ts';
import { HUB_PREFIX } from '../../core/contract/wire-constants.ts';
import { listSteps, readCommitted } from '../../store/records/runs/checkpoints.ts';
import type { TrainedPolicy } from '../../store/records/runs/find-policy.ts';
import { readBranches } from '../../store/records/runs/lineage.ts';
import { readCommit, readEval, readRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { isBuiltIn, sourceOfName } from '../../workers/base-models/base-model.ts';
import { knownModels } from '../../workers/base-models/known-models.ts';
import { trainedBase } from '../../workers/config/loaded-base.ts';
import type { Exported } from '../../workers/python/export-policy.ts';
import type { BaseFacts, CardFacts, CardFormat } from './model-card.ts';

/** Files that Python made of a policy: merged weights, or the format of another program. */
export type Converted = Exported & {
  /** Type of the weights, `q8_0` among them. */
  readonly dtype: string;
};

/** Path below Temper's package; a name with a dash is a folder beside the first one (gpu-worker/temper_gpu/model/models.py). */
const POCKET_FOLDERS = 'node_modules/temper-rl/gpu-worker/temper_gpu/pocket/';

export async function readCardFacts(
  store: Store,
  policy: TrainedPolicy,
  { format, converted }: { readonly format: CardFormat; readonly converted: Converted | null },
  { project, env }: { readonly project: string; readonly env: Readonly<NodeJS.ProcessEnv> },
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

/** Limit of ancestors, in case a forged run is its own ancestor. */
const MOST_FORKS = 50;

/** Origin of a policy's weights over branches and forks, as lines of text, oldest first. */
export async function readLineage(store: Store, checkpoint: Checkpoint, forks = 0): Promise<string[]> {
  const { run, branch, step } = checkpoint;
  const stored = await readRun(store, run);
  const parent = stored?.file.parent ?? null;
  const start = stored?.file.config.train.lora === null ? 'the weights of the base model' : 'a fresh adapter';
  return [...(await beginning(store, run, { parent, start }, forks)), ...(await branchLines(store, run, branch, step))];
}

async function beginning(
  store: Store,
  run: string,
  { parent, start }: { readonly parent: Checkpoint | null; readonly start: string },
  forks: number,
): Promise<string[]> {
  if (parent === null) return [`run ${run}: ${start}`];
  const fork = `run ${run}: a fork of ${policyName(parent)}, manifest ${parent.manifestSha256}`;
  // The run of that name may be a different one, or in another store.
  const isHere = (await readCommit(store, parent))?.sha256 === parent.manifestSha256;
  return [...(isHere && forks < MOST_FORKS ? await readLineage(store, parent, forks + 1) : []), fork];
}

async function branchLines(store: Store, run: string, branch: number, step: number): Promise<string[]> {
  const lineage = planLineage(await readBranches(store, run), branch);
  const starts = [{ branch: 0, fromStep: 0, fromBranch: 0 }, ...lineage];
  return starts.flatMap(({ branch: number, fromStep, fromBranch }, index) => {
    const last = starts[index + 1]?.fromStep ?? step;
    const origin = number === 0 ? '' : `, a branch from step ${fromStep} of branch ${fromBranch}`;
    if (last <= fromStep) return number === 0 ? [] : [`run ${run}, branch ${number}${origin}: no step`];
    const place = lineage.length === 0 ? `run ${run}` : `run ${run}, branch ${number}`;
    return [`${place}${origin}: ${formatSteps([fromStep + 1, last])}`];
  });
}
