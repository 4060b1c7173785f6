/** Files beside a step's groups: its branch and lineage, verdicts that use its groups, policies that sampled. */
import type { StepVerdict } from '../../core/contract/records.ts';
import type { Branch, GroupResult, SettingChange } from '../../core/contract/contract.ts';
import { branchOfStep, planLineage } from '../../core/names/lineage.ts';
import { hasWindow } from '../../core/plan/window.ts';
import { policyName } from '../../core/names/policy-name.ts';
import { placeOfGroup, rolloutsKey, type GroupPlace, type StepPlace } from '../../store/layout.ts';
import { readAllChanges, readBranches } from '../../store/records/runs/lineage.ts';
import { policiesOf, type Commit } from '../../store/records/runs/manifest.ts';
import { readCommit, type RunFile } from '../../store/records/runs/run-reader.ts';
import { readStepVerdict } from '../../store/records/groups/step-verdict.ts';
import type { Store } from '../../store/store.ts';
import type { ViewContext } from '../context/context.ts';
import { requireHead } from '../runs/run-cache.ts';

export interface RunInStore {
  readonly run: string;
  readonly file: RunFile;
  readonly branches: readonly Branch[];
  readonly changes: readonly SettingChange[];
}

export async function readRunInStore(context: Pick<ViewContext, 'store'>, run: string): Promise<RunInStore> {
  const { file } = await requireHead(context, run);
  const { store } = context;
  const [branches, { changes }] = await Promise.all([readBranches(store, run), readAllChanges(store, run)]);
  return { run, file, branches, changes };
}

export function lineageOf({ branches }: RunInStore, branch: number): Branch[] {
  return planLineage(branches, branch);
}

export function newestBranch({ branches }: RunInStore): number {
  return branches.at(-1)?.branch ?? 0;
}

/** How many steps may pass until a step takes a group that an earlier one dealt; steps that train nothing count as well. */
const MOST_STEPS_LATER = 50;

export interface Decided {
  readonly place: StepPlace;
  readonly verdict: StepVerdict;
}

/** Verdicts that may name groups which a step dealt: its own, and with a window those of the steps after it. */
export async function readVerdicts(store: Store, facts: RunInStore, dealt: StepPlace): Promise<Decided[]> {
  const own = await readDecided(store, dealt);
  if (!hasWindow(facts.file.config)) return own === null ? [] : [own];
  const last = Math.min(MOST_STEPS_LATER, facts.file.config.maxRewardStaleness + 2);
  const later = Array.from({ length: last }, (_, index) => ({ ...dealt, step: dealt.step + index + 1 }));
  const found = await Promise.all(later.map((place) => readDecided(store, place)));
  return [own, ...found].filter((each) => each !== null);
}

async function readDecided(store: Store, place: StepPlace): Promise<Decided | null> {
  const verdict = await readStepVerdict(store, place);
  return verdict === null ? null : { place, verdict };
}

export interface GroupUse {
  readonly use: GroupResult['use'];
  /** The step that decided on it: where it is trained, its commit has the numbers of training. */
  readonly decidedBy: StepPlace;
}

/** Uses by the key of the group's rollouts. */
export function usesIn(decided: readonly Decided[]): Map<string, GroupUse> {
  const entries = decided.flatMap(({ place, verdict }) =>
    verdict.groups.map((ref) => [rolloutsKey(placeOfGroup(place, ref)), { use: ref.use, decidedBy: place }] as const),
  );
  return new Map(entries);
}

export async function findUse(store: Store, facts: RunInStore, place: GroupPlace): Promise<GroupUse | null> {
  return usesIn(await readVerdicts(store, facts, place)).get(rolloutsKey(place)) ?? null;
}

/** Commits that are looked at before it is said that nobody knows who sampled. */
const MOST_COMMITS = 32;

/** Name of the newest policy up to a step that has the adapter, such as `demo@11`; null if it is not known. */
export async function findSampler(
  store: Store,
  facts: RunInStore,
  { branch, step: last }: Pick<StepPlace, 'branch' | 'step'>,
  adapterSha256: string | null,
): Promise<string | null> {
  if (adapterSha256 === null) return null;
  const lineage = lineageOf(facts, branch);
  for (let step = last; step >= Math.max(0, last - MOST_COMMITS); step--) {
    const place = { run: facts.run, branch: branchOfStep(lineage, step), step };
    const commit = await readCommit(store, place);
    if (commit !== null && hasAdapter(commit, adapterSha256)) return policyName(place);
  }
  return null;
}

function hasAdapter({ manifest }: Commit, adapterSha256: string): boolean {
  return policiesOf(manifest).some(([, { adapter }]) => adapter.sha256 === adapterSha256);
}
