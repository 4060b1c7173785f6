/** An existing run with a new run's name: continued if its configuration is the same, refused otherwise. */
import { badConfig } from '../../core/contract/failures.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import { describeConfigDifferences } from '../../core/rules/config-differences.ts';
import { NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import { readAllChanges, readBranches } from '../../store/records/runs/lineage.ts';
import { readRun, type StoredRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { flagOf } from './run-flags.ts';

export interface Existing {
  /** Stored run of this name with the same configuration, if any. */
  readonly existing: StoredRun | null;
  /** True if the run was rolled back or its settings were changed: the store then says where to resume. */
  readonly isSteered: boolean;
  /** True if nothing is left to do. */
  readonly isComplete: boolean;
}

/** Looks up the run of this name; refuses one with another configuration. */
export async function findExisting(store: Store, config: RunConfig): Promise<Existing> {
  const existing = await readRun(store, config.run);
  if (existing !== null) checkSameConfig(existing.file.config, config);
  const branch = existing === null ? 0 : ((await readBranches(store, config.run)).at(-1)?.branch ?? 0);
  const { amendments } = await readAllChanges(store, config.run);
  // A run rolled back after its end is not complete, even before a worker records it.
  const isComplete = existing?.state?.state === 'completed' && existing.state.branch === branch;
  // A complete run is only shown.
  if (!isComplete) await store.checkWritable();
  return { existing, isSteered: branch > 0 || amendments > 0, isComplete };
}

export function checkRunName(name: string): string {
  if (NAME_PATTERN.test(name)) return name;
  throw badConfig(
    `--run must be lower case letters, digits and ._- (at most 63, the first a letter or digit), got ${JSON.stringify(name)}; pass --run my-run`,
  );
}

export function checkSameConfig(recorded: RunConfig, asked: RunConfig): void {
  const differences = describeConfigDifferences(recorded, asked).map(nameFlag);
  if (differences.length === 0) return;
  throw badConfig(
    `the run ${asked.run} exists with another configuration (recorded → requested): ${differences.join(', ')}; pass another --run, or the recorded values`,
  );
}

/** `train.lora.rank: 16 → 8` as a person typed it: `--lora-rank: 16 → 8`. */
function nameFlag(difference: string): string {
  const [path = ''] = difference.split(':', 1);
  const flag = flagOf(path);
  return flag === null ? difference : `--${flag}${difference.slice(path.length)}`;
}
