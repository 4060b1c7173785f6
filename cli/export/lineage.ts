/** Origin of a policy's weights over branches and forks, as lines of text, oldest first. */
import type { Checkpoint } from '../../core/contract.ts';
import { formatSteps } from '../../core/format.ts';
import { planLineage } from '../../core/lineage.ts';
import { policyName } from '../../core/policy-name.ts';
import { readBranches } from '../../store/records/lineage.ts';
import { readCommit, readRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';

/** Limit of ancestors, in case a forged run is its own ancestor. */
const MOST_FORKS = 50;

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
