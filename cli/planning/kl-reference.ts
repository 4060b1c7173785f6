/** `--kl-reference CHECKPOINT`: the frozen policy of the KL penalty. */
import { badConfig } from '../../core/contract/failures.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import { differingLoraOption } from '../../core/numbers/lora-difference.ts';
import type { TrainedName } from '../../core/names/policy-name.ts';
import { MAIN_POLICY } from '../../core/contract/wire-constants.ts';
import { listCheckpoints } from '../../store/records/runs/checkpoints.ts';
import { findTrainedPolicy, hasLearned, type TrainedPolicy } from '../../store/records/runs/find-policy.ts';
import { referencesOf } from '../../store/records/runs/references.ts';
import type { Store } from '../../store/store.ts';
import { readTrainedName } from '../command-line/values.ts';
import { loraFlag } from './run-flags.ts';
import type { StepPlace } from '../../store/layout.ts';
import { readManifest } from '../../store/records/runs/run-reader.ts';
import { policiesOf } from '../../store/records/runs/manifest.ts';
import { describeBase, isSameBase, trainedBase } from '../../workers/config/loaded-base.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { EngineFlags } from '../command-line/engine-flags.ts';
import { findLoadedBase } from './check-engine.ts';

/** Null if none is given. An existing run keeps its `recorded` one. */
export async function readKlReference(
  store: Store,
  text: string | null,
  recorded: RunConfig | null,
): Promise<TrainedPolicy | null> {
  if (text === null) return null;
  const named = readTrainedName(text);
  const reference = await findTrainedPolicy(store, await findKept(store, named, recorded));
  if (!hasLearned(reference))
    throw badConfig(
      `--kl-reference ${reference.name} has no effect: nothing of it is trained yet, so it is the base model; name a trained checkpoint, or leave --kl-reference out`,
    );
  return reference;
}

/** An existing run keeps its checkpoint, because `latest`, `best` and the line of a run move. */
async function findKept(store: Store, named: TrainedName, recorded: RunConfig | null): Promise<TrainedName> {
  const [kept] = referencesOf(recorded);
  if (kept === undefined) return named;
  const checkpoints = await listCheckpoints(store, named.run);
  const policy = named.policy ?? MAIN_POLICY;
  const found = checkpoints.find(
    ({ branch, step, commit }) =>
      (typeof named.step !== 'number' || step === named.step) &&
      (named.branch ?? branch) === branch &&
      new Map(policiesOf(commit.manifest)).get(policy)?.adapter.sha256 === kept.sha256,
  );
  return found === undefined ? named : { ...found, policy };
}

/** The reference must fit the run: its weights replace the run's own. */
export async function checkReference(
  reference: TrainedPolicy | null,
  { baseModel, train }: RunConfig,
  source: BaseSource,
): Promise<void> {
  if (reference === null) return;
  const { name, config } = reference;
  if (config.baseModel !== baseModel)
    throw badConfig(
      `--kl-reference must be a checkpoint of ${baseModel}, got ${name} of ${config.baseModel}; name another checkpoint`,
    );
  await checkReferenceBase(reference, source);
  const kinds = [config.train.lora, train.lora].map((lora) => (lora === null ? 'all weights' : 'a LoRA adapter'));
  if (kinds[0] !== kinds[1])
    throw badConfig(
      `--kl-reference must be a checkpoint of a run that trains the same: ${name} has ${kinds[0]}, the run trains ${kinds[1]}; name another checkpoint`,
    );
  const found = differingLoraOption(config.train.lora ?? {}, train.lora ?? {}, ['dropout']);
  if (found !== null)
    throw badConfig(
      `--kl-reference must have the LoRA options of the run: ${name} has ${loraFlag(found)} ${found.one}, the run ${found.other}; pass that, or name another checkpoint`,
    );
}

/** Sources for how the run's base model is loaded. */
export interface BaseSource extends Pick<CommandEnvironment, 'project' | 'env'> {
  readonly store: Store;
  /** First commit of the run, or the one that it starts from; null for a new run. */
  readonly begun: StepPlace | null;
  /** Null for a command that starts no engine. */
  readonly flags: EngineFlags | null;
}

/** Compares base models. For a new run only how weights are loaded: its GPU worker hashes them later. */
async function checkReferenceBase({ name, manifest }: TrainedPolicy, source: BaseSource): Promise<void> {
  const { store, begun } = source;
  const own = begun && (await readManifest(store, begun));
  const loaded = own ? trainedBase(own) : await findLoadedBase(source.flags, source);
  const trained = trainedBase(manifest);
  if (loaded !== null && !isSameBase(trained, loaded))
    throw badConfig(
      `--kl-reference must be trained on the base model as the run loads it: ${name} has it in ${describeBase(trained)}, the run in ${describeBase(loaded)}; name another checkpoint${own ? '' : ', or load it in the same way (--dtype, --load-in-4bit, or engine in temporal.config.ts)'}`,
    );
  if (own && own.baseModelSha256 !== manifest.baseModelSha256)
    throw badConfig(
      `--kl-reference must be trained on the weights of the run's base model: ${name} has ${manifest.baseModel} with sha256 ${manifest.baseModelSha256}, the run ${own.baseModelSha256}; name another checkpoint`,
    );
}
