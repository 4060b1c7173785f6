/** Which step is made again, and from what: the inputs that its `train` had. */
import type { InitialiseInput, RunConfig, TrainInput } from '../../core/contract.ts';
import { planInitialise } from '../../core/plan-step.ts';
import { policyName } from '../../core/policy-name.ts';
import { checkpointOf, type Manifest } from '../../store/records/manifest.ts';
import { isPruned } from '../../store/records/pruned.ts';
import type { Store } from '../../store/store.ts';
import type { FoundParent, StoredStep } from '../../store/records/verify/chain.ts';
import type { Verification } from '../../store/records/verify/verify-run.ts';
import { UsageError } from '../command-line/errors.ts';

export interface RecomputePlan {
  /** `run@step` */
  policy: string;
  work: TrainInput | InitialiseInput;
  manifest: Manifest;
  manifestSha256: string;
}

export interface RecomputeChoice {
  step: number | null;
  branch: number | null;
}

/** A sentence where the step cannot be made again; what a person asked for by number must exist. */
export async function readRecomputePlan(
  store: Store,
  run: string,
  { chain, parents, findings }: Verification,
  config: RunConfig | null,
  choice: RecomputeChoice,
): Promise<RecomputePlan | string> {
  const chosen = chooseStep(run, chain, choice);
  if (chosen === null) return 'no step is committed yet';
  const name = policyName(chosen);
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

function chooseStep(run: string, chain: readonly StoredStep[], choice: RecomputeChoice): CommittedStep | null {
  const committed = chain.filter((step): step is CommittedStep => step.commit !== null);
  const branch = choice.branch ?? committed.at(-1)?.branch;
  const ofBranch = committed.filter((step) => step.branch === branch);
  const chosen = choice.step === null ? ofBranch.at(-1) : ofBranch.find(({ step }) => step === choice.step);
  if (chosen !== undefined) return chosen;
  if (choice.step === null && choice.branch === null) return null;
  const there = `${run} has the branches ${[...new Set(committed.map((step) => step.branch))].join(', ')}, branch ${branch} the steps ${ofBranch.map(({ step }) => step).join(', ') || 'none'}`;
  throw new UsageError(
    `step ${choice.step ?? 'last'} of branch ${branch} must be committed, it is not (${there}); pass another --step`,
  );
}

function groupKeys(step: CommittedStep): string[] {
  const folder = step.key.replace(/manifest\.json$/, 'groups');
  return step.commit.manifest.groups.flatMap(({ group }) => [
    `${folder}/${group}.rollouts.jsonl.gz`,
    `${folder}/${group}.judged.json`,
  ]);
}

function planWork(
  run: string,
  { commit, branch, step }: CommittedStep,
  parent: FoundParent | null,
  config: RunConfig | null,
): TrainInput | InitialiseInput | null {
  const { manifest } = commit;
  if (step === 0) return config !== null && parent === null ? planInitialise(config, branch) : null;
  // Manifests of the first version do not say how they were trained; run.json does.
  const [seed, train] = [manifest.seed ?? config?.seed, manifest.train ?? config?.train];
  if (parent === null || seed === undefined || train === undefined) return null;
  const { baseModel, groups, learningRate, inputsSha256 } = manifest;
  const place = {
    run,
    branch,
    step,
    parent: checkpointOf(parent.place.run, parent.commit),
  };
  return { ...place, baseModel, groups, learningRate, seed, train, inputsSha256 };
}

async function isGone(store: Store, { place, commit }: FoundParent): Promise<boolean> {
  const { adapter, optimizer } = commit.manifest;
  return (await isPruned(store, place, adapter)) || isPruned(store, place, optimizer);
}
