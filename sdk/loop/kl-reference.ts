/** `klReference` of `model.train`: the frozen checkpoint that a KL coefficient charges a divergence from. */
import type { BlobRef } from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { differingLoraOption } from '../../core/lora-difference.ts';
import { parsePolicyName } from '../../core/policy-name.ts';
import { findTrainedPolicy, type TrainedPolicy } from '../../store/records/find-policy.ts';
import { readManifest } from '../../store/records/run-reader.ts';
import type { LoopRun } from './loop-run.ts';

/** Its adapter, which the plan of the step names by its hash; null where none is named. */
export async function readKlReference(run: LoopRun, named: string | undefined): Promise<BlobRef | null> {
  if (named === undefined) return null;
  const policy = typeof named === 'string' ? parsePolicyName(named) : null;
  if (policy === null) throw refused(`name one checkpoint as RUN@STEP, got ${JSON.stringify(named)}`, 'number');
  const reference = await findTrainedPolicy(run.store, policy);
  checkTrained(reference);
  checkShape(run, reference);
  await checkBase(run, reference);
  return reference.manifest.adapter;
}

function checkTrained({ manifest, name, file }: TrainedPolicy): void {
  if (manifest.step > 0 || manifest.parent !== null || file.config.startAdapter !== undefined) return;
  throw refused(`be trained, but nothing of ${name} is, so it is the base model`, 'none');
}

/** Its weights are laid into the place of the model's own. */
function checkShape({ name: own, config: { train } }: LoopRun, { name, config }: TrainedPolicy): void {
  const [its, ours] = [config.train.lora, train.lora].map((lora) => (lora === null ? 'all weights' : 'a LoRA adapter'));
  if (its !== ours) throw refused(`train the same: ${name} has ${its}, ${own} trains ${ours}`);
  const found = differingLoraOption(config.train.lora ?? {}, train.lora ?? {}, ['dropout']);
  if (found !== null)
    throw refused(`have the LoRA options of ${own}: ${name} has ${found.option} ${found.one}, ${own} ${found.other}`);
}

/** By the hash of its weights: two folders may have one name. */
async function checkBase({ name: own, store }: LoopRun, { name, manifest }: TrainedPolicy): Promise<void> {
  const start = await readManifest(store, { run: own, branch: 0, step: 0 });
  if (start === null || start.baseModelSha256 === manifest.baseModelSha256) return;
  const [its, ours] = [manifest, start].map(({ baseModel, baseModelSha256 }) => `${baseModel} (${baseModelSha256})`);
  throw refused(`have the base model of ${own}, ${ours}, but ${name} has ${its}`);
}

const REMEDIES = {
  number: 'a restarted script must find the same one: pass taught.one@40, or model.getInferenceName(40)',
  none: 'leave klReference out, or name a trained checkpoint',
  other: 'name another checkpoint',
};

function refused(rule: string, remedy: keyof typeof REMEDIES = 'other'): TemperError {
  return new TemperError('BadConfig', `klReference of model.train must ${rule}; ${REMEDIES[remedy]}`);
}
