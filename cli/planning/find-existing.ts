/** The run that has a new run's name already: continued where its configuration is the same, refused where it is not. */
import type { RunConfig } from '../../core/contract.ts';
import { describeConfigDifferences } from '../../core/config-differences.ts';
import { NAME_PATTERN } from '../../core/wire-constants.ts';
import { readAllChanges, readBranches } from '../../store/records/lineage.ts';
import { readRun, type StoredRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { UsageError } from '../command-line/errors.ts';
import { flagOf } from './run-flags.ts';

export interface Existing {
  /** The run of this name in the store, where there is one: it has this very configuration. */
  readonly existing: StoredRun | null;
  /** True where the run was rolled back or its settings were changed: it goes on where its store says that it stands. */
  readonly isSteered: boolean;
  /** True where nothing is left to do. */
  readonly isComplete: boolean;
}

/** The run of this name, or none where it may be made; refused where the name stands for something else. */
export async function findExisting(store: Store, config: RunConfig): Promise<Existing> {
  const existing = await readRun(store, config.run);
  if (existing !== null) checkSameConfig(existing.file.config, config);
  const branch = existing === null ? 0 : ((await readBranches(store, config.run)).at(-1)?.branch ?? 0);
  const { amendments } = await readAllChanges(store, config.run);
  // A run that was rolled back after its end is not complete, though no worker has taken note of it yet.
  const isComplete = existing?.state?.state === 'completed' && existing.state.branch === branch;
  // What is complete is only shown.
  if (!isComplete) await store.checkWritable();
  return { existing, isSteered: branch > 0 || amendments > 0, isComplete };
}

export function checkRunName(name: string): string {
  if (NAME_PATTERN.test(name)) return name;
  throw new UsageError(
    `--run must be lower case letters, digits and ._- (at most 63, the first a letter or digit), got ${JSON.stringify(name)}; pass --run my-run`,
  );
}

export function checkSameConfig(recorded: RunConfig, asked: RunConfig): void {
  const differences = describeConfigDifferences(recorded, asked).map((difference) => nameFlag(difference, asked));
  if (differences.length === 0) return;
  throw new UsageError(
    `the run ${asked.run} exists with another configuration (recorded → requested): ${differences.join(', ')}; pass another --run, or the recorded values`,
  );
}

/** `train.lora.rank: 16 → 8` as a person typed it: `--lora-rank: 16 → 8`. */
function nameFlag(difference: string, config: RunConfig): string {
  const [path = ''] = difference.split(':', 1);
  const flag = flagOf(path, config);
  return flag === null ? difference : `--${flag}${difference.slice(path.length)}`;
}
