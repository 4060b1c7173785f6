/** The base model of a KL reference against the run's own: the run lays the reference's weights on it. */
import type { StepPlace } from '../../store/layout.ts';
import type { TrainedPolicy } from '../../store/records/find-policy.ts';
import { readManifest } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { describeBase, isSameBase, trainedBase } from '../../workers/loaded-base.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { EngineFlags } from '../command-line/engine-flags.ts';
import { UsageError } from '../command-line/errors.ts';
import { findLoadedBase } from './check-engine.ts';

/** Where a run's base model is known from before the run goes on. */
export interface BaseSource extends Pick<CommandEnvironment, 'project' | 'env'> {
  readonly store: Store;
  /** The run's own first commit, or the one that it begins with; null for a new run. */
  readonly begun: StepPlace | null;
  /** Null for a command that starts no engine. */
  readonly flags: EngineFlags | null;
}

/** Weights of a new run are hashed by its GPU worker: here, only how they are loaded is known. */
export async function checkReferenceBase({ name, manifest }: TrainedPolicy, source: BaseSource): Promise<void> {
  const { store, begun } = source;
  const own = begun && (await readManifest(store, begun));
  const loaded = own ? trainedBase(own) : await findLoadedBase(source.flags, source);
  const trained = trainedBase(manifest);
  if (loaded !== null && !isSameBase(trained, loaded))
    throw new UsageError(
      `--kl-reference must be trained on the base model as the run loads it: ${name} has it in ${describeBase(trained)}, the run in ${describeBase(loaded)}; name another checkpoint${own ? '' : ', or load it in the same way (--dtype, --load-in-4bit, or engine in temporal.config.ts)'}`,
    );
  if (own && own.baseModelSha256 !== manifest.baseModelSha256)
    throw new UsageError(
      `--kl-reference must be trained on the weights of the run's base model: ${name} has ${manifest.baseModel} with sha256 ${manifest.baseModelSha256}, the run ${own.baseModelSha256}; name another checkpoint`,
    );
}
