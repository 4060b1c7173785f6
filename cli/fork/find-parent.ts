/** The checkpoint that a run begins with: named by a person, found in the store, and held to what may differ from it. */
import { NAME_PATTERN } from '../../core/contract.ts';
import type { Checkpoint, RunConfig } from '../../core/contract.ts';
import { configAt } from '../../core/settings.ts';
import { parsePolicyName, policyName } from '../../core/policy-name.ts';
import { readCheckpoint, readStanding } from '../../store/records/find-checkpoint.ts';
import { readAllChanges } from '../../store/records/lineage.ts';
import { requireRun } from '../../store/records/run-reader.ts';
import type { Run } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { UsageError } from '../command-line/errors.ts';
import { flagOf } from '../train/run-flags.ts';

export interface Parent {
  readonly checkpoint: Checkpoint;
  /** Of the parent's run, as it was when the checkpoint was made. */
  readonly config: RunConfig;
}

const LATEST = '@latest';

/** Of RUN@STEP, RUN~BRANCH@STEP or RUN@latest. */
export async function findParent(store: Store, text: string): Promise<Parent> {
  const newest = runOfLatest(text);
  if (newest !== null) return findNewest(store, newest);
  const policy = parsePolicyName(text);
  if (policy === null) {
    throw new UsageError(
      `the checkpoint must be RUN@STEP, RUN~BRANCH@STEP or RUN@latest, got ${JSON.stringify(text)}; see temper runs`,
    );
  }
  const run = await requireRun(store, policy.run);
  const checkpoint = await readCheckpoint(store, policy);
  if (checkpoint !== null) return parentOf(store, run, checkpoint);
  throw new UsageError(
    `${policyName(policy)} is not committed (${policy.run} is at step ${run.state?.step ?? 0}${branchOf(run)}); pass another step, or ${policy.run}@latest`,
  );
}

/** The run in `RUN@latest`; null where the text is no such name. */
export function runOfLatest(text: string): string | null {
  const name = text.endsWith(LATEST) ? text.slice(0, -LATEST.length) : '';
  return NAME_PATTERN.test(name) ? name : null;
}

/** The commit that the run stands on. */
export async function findNewest(store: Store, name: string): Promise<Parent> {
  const run = await requireRun(store, name);
  const checkpoint = run.state === null ? null : await readStanding(store, run.state);
  if (checkpoint !== null) return parentOf(store, run, checkpoint);
  throw new UsageError(`${name} has no committed step yet; wait for one, or name another run`);
}

async function parentOf(store: Store, { file }: Run, checkpoint: Checkpoint): Promise<Parent> {
  const { changes } = await readAllChanges(store, checkpoint.run);
  return { checkpoint, config: configAt(file.config, changes, checkpoint) };
}

function branchOf({ state }: Run): string {
  return state === null || state.branch === 0 ? '' : ` of branch ${state.branch}`;
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
