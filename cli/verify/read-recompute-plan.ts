/** Step to recompute, and the inputs of its `train` activity. */
import { badConfig } from '../../core/contract/failures.ts';
import type { Branch, InitialiseInput, RunConfig, TrainInput } from '../../core/contract/contract.ts';
import { planInitialise } from '../../core/plan/step.ts';
import { branchOfStep } from '../../core/names/lineage.ts';
import { checkpointName, policyName, type CheckpointName } from '../../core/names/policy-name.ts';
import { judgedKey, placeOfGroup, rolloutsKey } from '../../store/layout.ts';
import { describeUncommitted, findCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { readLineage } from '../../store/records/runs/lineage.ts';
import { checkpointOf, trainingOf, type Manifest } from '../../store/records/runs/manifest.ts';
import { readGone } from '../../store/records/runs/pruned.ts';
import type { Store } from '../../store/store.ts';
import type { FoundParent, StoredStep } from '../../store/records/verify/chain.ts';
import type { Verification } from '../../store/records/verify/verify-run.ts';

export interface RecomputePlan {
  /** `run@step` */
  policy: string;
  work: TrainInput | InitialiseInput;
  manifest: Manifest;
  manifestSha256: string;
}

/** Returns a sentence if the step cannot be recomputed. A step named by number must exist. */
export async function readRecomputePlan(
  store: Store,
  named: CheckpointName,
  { chain, parents, findings }: Verification,
  config: RunConfig | null,
): Promise<RecomputePlan | string> {
  const { run } = named;
  const isFound = named.step === 'best' || named.step === 'production';
  const found = isFound ? await findCheckpoint(store, named) : null;
  if (found !== null && found.run !== run)
    throw badConfig(`${run}@production is ${policyName(found)}, of another run; pass ${policyName(found)}`);
  const lineage = await readLineage(store, run);
  const chosen = chooseStep(chain, found ?? named, lineage);
  if (chosen === null) return 'no step is committed yet';
  const name = checkpointName(chosen, lineage);
  const parent = parents.get(chosen.key) ?? null;
  const { manifest, sha256 } = chosen.commit;
  const broken = [chosen.key, manifest.adapterConfig.key, ...groupKeys(chosen)].find((key) => findings.isBroken(key));
  if (broken !== undefined) return `${name} was not re-computed: ${broken} is broken`;
  const work = planWork(run, chosen, parent, config);
  if (work === null) return `${name} was not re-computed: what it was made from is not in this store`;
  if (parent !== null && (await isGone(store, parent)))
    return `${name} was not re-computed: the weights of its parent ${policyName(parent.place)} were pruned`;
  return { policy: name, work, manifest, manifestSha256: sha256 };
}

type CommittedStep = StoredStep & { commit: NonNullable<StoredStep['commit']> };

/** Looks in the chain read for verification, because a run with damaged objects still has steps. */
function chooseStep(
  chain: readonly StoredStep[],
  { run, branch, step }: CheckpointName,
  lineage: readonly Branch[],
): CommittedStep | null {
  const committed = chain.filter((each): each is CommittedStep => each.commit !== null);
  const last = committed.at(-1);
  if (last === undefined && step === 'latest') return null;
  const wanted = branch ?? (typeof step === 'number' ? branchOfStep(lineage, step) : last?.branch);
  const ofBranch = committed.filter((each) => each.branch === wanted);
  const chosen = step === 'latest' ? ofBranch.at(-1) : ofBranch.find((each) => each.step === step);
  if (chosen !== undefined) return chosen;
  const place = { run, branch: wanted ?? 0 };
  if (typeof step === 'string')
    throw badConfig(`branch ${place.branch} of ${run} has no committed step; pass another one, or ${run}@latest`);
  const before = ofBranch.findLast((each) => each.step <= step) ?? null;
  throw badConfig(describeUncommitted({ ...place, step }, before && { ...before, run }, lineage));
}

function groupKeys(step: CommittedStep): string[] {
  const places = step.commit.manifest.groups.map((ref) => placeOfGroup(step, ref));
  return places.flatMap((place) => [rolloutsKey(place), judgedKey(place)]);
}

function planWork(
  run: string,
  { commit, branch, step }: CommittedStep,
  parent: FoundParent | null,
  config: RunConfig | null,
): TrainInput | InitialiseInput | null {
  const { manifest } = commit;
  if (step === 0) return config !== null && parent === null ? planInitialise(config, branch) : null;
  const training = trainingOf(manifest);
  if (parent === null || training === null) return null;
  const { inputsSha256 } = manifest;
  return { ...training, run, branch, step, parent: checkpointOf(parent.place.run, parent.commit), inputsSha256 };
}

async function isGone(store: Store, { place, commit }: FoundParent): Promise<boolean> {
  return (await readGone(store, place, commit)) !== false;
}
