/** `--kl-reference CHECKPOINT`: the frozen adapter that a KL coefficient charges a divergence from. */
import type { BlobRef, RunConfig } from '../../core/contract.ts';
import type { CheckpointName } from '../../core/policy-name.ts';
import { listCheckpoints } from '../../store/records/checkpoints.ts';
import { findTrainedPolicy, hasLearned, type TrainedPolicy } from '../../store/records/find-policy.ts';
import type { Store } from '../../store/store.ts';
import { readCheckpointName } from '../command-line/checkpoint-names.ts';
import { UsageError } from '../command-line/errors.ts';
import { loraDifference } from './lora-difference.ts';
import { checkReferenceBase, type BaseSource } from './reference-base.ts';

/** Null where none is given. A run keeps the one that it was `recorded` with. */
export async function readKlReference(
  store: Store,
  text: string | null,
  recorded: RunConfig | null,
): Promise<TrainedPolicy | null> {
  if (text === null) return null;
  const named = readCheckpointName(text);
  const reference = await findTrainedPolicy(store, await findKept(store, named, recorded?.train.klReference));
  if (!hasLearned(reference))
    throw new UsageError(
      `--kl-reference ${reference.name} has no effect: nothing of it is trained yet, so it is the base model; name a trained checkpoint, or leave --kl-reference out`,
    );
  return reference;
}

/** `latest` and `best` move on with their run: a run that exists goes on with the checkpoint that it began with. */
async function findKept(store: Store, named: CheckpointName, kept: BlobRef | undefined): Promise<CheckpointName> {
  if (kept === undefined || typeof named.step === 'number') return named;
  const checkpoints = await listCheckpoints(store, named.run);
  return checkpoints.find(({ commit }) => commit.manifest.adapter.sha256 === kept.sha256) ?? named;
}

/** Its weights are laid into the place of the run's own. */
export async function checkReference(
  reference: TrainedPolicy | null,
  { baseModel, train }: RunConfig,
  source: BaseSource,
): Promise<void> {
  if (reference === null) return;
  const { name, config } = reference;
  if (config.baseModel !== baseModel)
    throw new UsageError(
      `--kl-reference must be a checkpoint of ${baseModel}, got ${name} of ${config.baseModel}; name another checkpoint`,
    );
  await checkReferenceBase(reference, source);
  const kinds = [config.train.lora, train.lora].map((lora) => (lora === null ? 'all weights' : 'a LoRA adapter'));
  if (kinds[0] !== kinds[1])
    throw new UsageError(
      `--kl-reference must be a checkpoint of a run that trains the same: ${name} has ${kinds[0]}, the run trains ${kinds[1]}; name another checkpoint`,
    );
  const found = loraDifference(config.train.lora ?? {}, train.lora ?? {}, ['dropout']);
  if (found !== null)
    throw new UsageError(
      `--kl-reference must have the LoRA options of the run: ${name} has ${found.flag} ${found.one}, the run ${found.other}; pass that, or name another checkpoint`,
    );
}
