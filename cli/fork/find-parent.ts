/** The checkpoint that a run begins with: named by a person, found in the store, and held to what may differ from it. */
import type { Checkpoint, RunConfig } from '../../core/contract.ts';
import { configAt } from '../../core/settings.ts';
import { policyName, type CheckpointName } from '../../core/policy-name.ts';
import { findCheckpoint } from '../../store/records/find-checkpoint.ts';
import { readAllChanges } from '../../store/records/lineage.ts';
import { requireRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { UsageError } from '../command-line/errors.ts';
import { flagOf } from '../train/run-flags.ts';

export interface Parent {
  readonly checkpoint: Checkpoint;
  /** Of the parent's run, as it was when the checkpoint was made. */
  readonly config: RunConfig;
}

export async function findParent(store: Store, name: CheckpointName): Promise<Parent> {
  const checkpoint = await findCheckpoint(store, name);
  const { file } = await requireRun(store, checkpoint.run);
  const { changes } = await readAllChanges(store, checkpoint.run);
  return { checkpoint, config: configAt(file.config, changes, checkpoint) };
}

/** An adapter goes on in its own shape on its own base model: anything else is another adapter. */
export function checkFits({ checkpoint, config: recorded }: Parent, config: RunConfig): void {
  const because = `the run continues the adapter of ${policyName(checkpoint)}`;
  if (recorded.baseModel !== config.baseModel)
    throw new UsageError(
      `--base-model must be ${recorded.baseModel} (${because}), got ${config.baseModel}; pass --base-model ${recorded.baseModel}`,
    );
  const asked = new Map<string, unknown>(Object.entries(config.train.lora));
  for (const [key, value] of Object.entries(recorded.train.lora)) {
    const [before, after] = [value, asked.get(key)].map((each) => JSON.stringify(each));
    if (before !== after)
      throw new UsageError(
        `--${flagOf(`train.lora.${key}`)} must stay ${before} (${because}), got ${after}; leave it out`,
      );
  }
}
