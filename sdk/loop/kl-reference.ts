/** `klReference` of `model.train`: the frozen checkpoint that a KL coefficient charges a divergence from. */
import type { BlobRef, LoraConfig } from '../../core/contract.ts';
import { badConfig, type TemperError } from '../../core/failures.ts';
import { differingLoraOption } from '../../core/lora-difference.ts';
import { parseTrainedName } from '../../core/policy-name.ts';
import { decodeJson } from '../../store/bytes/json.ts';
import { findTrainedPolicy, hasLearned, type TrainedPolicy } from '../../store/records/find-policy.ts';
import type { Manifest } from '../../store/records/manifest.ts';
import { readManifest } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { LoopRun } from './loop-run.ts';

/** Its adapter, which the plan of the step names by its hash; nothing where none is named. */
export async function findReference(run: LoopRun, named: string | undefined): Promise<{ klReference?: BlobRef }> {
  if (named === undefined) return {};
  const policy = typeof named === 'string' ? parseTrainedName(named) : null;
  if (typeof policy?.step !== 'number')
    throw refused(`name one checkpoint as RUN@STEP, got ${JSON.stringify(named)}`, 'number');
  const reference = await findTrainedPolicy(run.store, policy);
  if (!hasLearned(reference))
    throw refused(`be trained, but nothing of ${reference.name} is, so it is the base model`, 'none');
  const start = await readManifest(run.store, { run: run.name, branch: 0, step: 0 });
  if (start !== null) {
    checkBase(run, reference, start);
    await checkShape(run, reference, start);
  }
  return { klReference: reference.adapter };
}

/** Identified by the hash of its weights: two folders may have one name. */
function checkBase({ name: own }: LoopRun, { name, manifest }: TrainedPolicy, start: Manifest): void {
  if (start.baseModelSha256 === manifest.baseModelSha256) return;
  const [its, ours] = [manifest, start].map(({ baseModel, baseModelSha256 }) => `${baseModel} (${baseModelSha256})`);
  throw refused(`have the base model of ${own}, ${ours}, but ${name} has ${its}`);
}

/** Its weights are laid into the place of the model's own. */
async function checkShape(run: LoopRun, { name, config, manifest }: TrainedPolicy, start: Manifest): Promise<void> {
  const { name: own, store } = run;
  const [its, ours] = [config.train.lora, run.config.train.lora];
  if (its === null || ours === null) {
    if (its === ours) return;
    const [theirs, mine] = [its, ours].map((lora) => (lora === null ? 'all weights' : 'a LoRA adapter'));
    throw refused(`train the same: ${name} has ${theirs}, ${own} trains ${mine}`);
  }
  const sameModules = its.targetModules === null && ours.targetModules === null;
  const shapes = sameModules
    ? ([its, ours] as const)
    : ([await withModules(store, its, manifest), await withModules(store, ours, start)] as const);
  const found = differingLoraOption(...shapes, ['dropout']);
  if (found !== null)
    throw refused(`have the LoRA options of ${own}: ${name} has ${found.option} ${found.one}, ${own} ${found.other}`);
}

/** Null stands for all linear layers: an adapter's own file lists what they are, as somebody else's adapter does. */
async function withModules(store: Store, lora: LoraConfig, { adapterConfig }: Manifest): Promise<LoraConfig> {
  if (lora.targetModules !== null) return { ...lora, targetModules: lora.targetModules.toSorted() };
  const { target_modules: modules } = decodeJson(await store.getBlob(adapterConfig), adapterConfig.key) as {
    target_modules: string[];
  };
  return { ...lora, targetModules: modules.toSorted() };
}

const REMEDIES = {
  number: 'a restarted script must find the same one: pass taught.one@40, or model.getInferenceName(40)',
  none: 'leave klReference out, or name a trained checkpoint',
  other: 'name another checkpoint',
};

function refused(rule: string, remedy: keyof typeof REMEDIES = 'other'): TemperError {
  return badConfig(`klReference of model.train must ${rule}; ${REMEDIES[remedy]}`);
}
