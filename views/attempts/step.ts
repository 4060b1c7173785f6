/** One step: its groups, its commit and its evaluation. A step in progress shows what there is of it so far. */
import pLimit from 'p-limit';

import type { StepSummary } from '../../core/contract/contract.ts';
import { plural } from '../../core/reports/format.ts';
import { describeSkipped, describeUnused, isSkipped } from '../../core/reports/learning-signal.ts';
import { branchOfStep } from '../../core/names/lineage.ts';
import { policyName } from '../../core/names/policy-name.ts';
import { warnOfTraining } from '../../core/reports/training-warnings.ts';
import {
  manifestTimesKey,
  placeOfGroup,
  rolloutsKey,
  stepPrefix,
  type GroupPlace,
  type StepPlace,
} from '../../store/layout.ts';
import { childNames, WHOLE_GROUPS_AT_ONCE } from '../../store/records/children.ts';
import { readStepLine } from '../../store/records/runs/curve.ts';
import { ManifestTimesSchema, readStored } from '../../store/records/file-schemas.ts';
import { listGroups } from '../../store/records/groups/group-files.ts';
import type { Commit, Manifest } from '../../store/records/runs/manifest.ts';
import { readCommit, readEval } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { GroupRow, StepView } from '../api/attempt-views.ts';
import { NotFound, type ViewContext } from '../context/context.ts';
import { readCount } from '../api/query.ts';
import { groupRow, rowsOf } from './group-row.ts';
import { readPlayed } from './read-played.ts';
import {
  lineageOf,
  newestBranch,
  readRunInStore,
  readVerdicts,
  usesIn,
  type GroupUse,
  type RunInStore,
} from './step-facts.ts';

const MAX_GROUPS = 200;

export async function viewStep(
  { store }: ViewContext,
  run: string,
  step: string,
  query: URLSearchParams,
): Promise<StepView> {
  const facts = await readRunInStore({ store }, run);
  const place = placeOfStep(facts, step, query);
  const [commit, decided, evaluation, summary] = await Promise.all([
    readCommit(store, place),
    readVerdicts(store, facts, place),
    readEval(store, place),
    place.step === 0 ? null : readStepLine(store, run, place),
  ]);
  const own = decided.find((each) => each.place.step === place.step)?.verdict ?? null;
  const places = await groupsOf(store, place, own === null ? [] : own.groups.map((ref) => placeOfGroup(place, ref)));
  if (commit === null && evaluation === null && summary === null && places.length === 0)
    throw new NotFound(`run ${run} has no step ${step} on branch ${place.branch}`);
  const shown = places.slice(0, MAX_GROUPS);
  return {
    run,
    branch: place.branch,
    step: place.step,
    summary,
    committedAt: (await readStored(store, manifestTimesKey(place), ManifestTimesSchema))?.committedAt ?? null,
    ...describeCommit(facts, place, commit),
    groups: await readRows(store, facts, shown, usesIn(decided)),
    evaluation,
    warnings: warnOfStep(place, summary),
    leftOut: places.length - shown.length,
    neighbours: await findNeighbours(store, facts, place),
  };
}

function placeOfStep(facts: RunInStore, step: string, query: URLSearchParams): StepPlace {
  if (!/^(0|[1-9][0-9]{0,8})$/.test(step)) throw new NotFound(`a step is a number from 0, got ${step}`);
  const lineage = lineageOf(facts, newestBranch(facts));
  const branch = readCount(query, 'branch') ?? branchOfStep(lineage, Number(step));
  return { run: facts.run, branch, step: Number(step) };
}

/** On the way to the step's branch: a step before a rollback is on an older one. */
async function findNeighbours(store: Store, facts: RunInStore, place: StepPlace): Promise<StepView['neighbours']> {
  const lineage = lineageOf(facts, place.branch);
  const exists = async (step: number): Promise<boolean> =>
    step >= 0 &&
    (await childNames(store, stepPrefix({ ...place, branch: branchOfStep(lineage, step), step }))).length > 0;
  const [previous, next] = await Promise.all([exists(place.step - 1), exists(place.step + 1)]);
  return { previous: previous ? place.step - 1 : null, next: next ? place.step + 1 : null };
}

/** Those that the step dealt, and those of earlier steps that it decided on, in plan order. */
async function groupsOf(store: Store, place: StepPlace, named: readonly GroupPlace[]): Promise<GroupPlace[]> {
  const dealt = (await listGroups(store, place)).map((group) => ({ ...place, group }));
  const all = new Map([...named, ...dealt].map((group) => [rolloutsKey(group), group]));
  return [...all.values()].toSorted((a, b) => a.step - b.step || a.group - b.group);
}

async function readRows(
  store: Store,
  facts: RunInStore,
  places: readonly GroupPlace[],
  uses: ReadonlyMap<string, GroupUse>,
): Promise<GroupRow[]> {
  const limit = pLimit(WHOLE_GROUPS_AT_ONCE);
  const rows = places.map((place) =>
    limit(async () => {
      const played = await readPlayed(store, { kind: 'group', ...place }, 'none');
      const use = uses.get(rolloutsKey(place)) ?? null;
      return played === null ? null : groupRow(place, played, rowsOf(facts, played, use));
    }),
  );
  return (await Promise.all(rows)).filter((row) => row !== null);
}

type CommitFacts = Pick<StepView, 'adapterSha256' | 'parent' | 'sampler' | 'platform'>;

function describeCommit(facts: RunInStore, { run, branch, step }: StepPlace, commit: Commit | null): CommitFacts {
  if (commit === null) return { adapterSha256: null, parent: null, sampler: null, platform: null };
  const { manifest } = commit;
  const parent = describeParent(facts, { run, branch, step }, manifest);
  return {
    adapterSha256: manifest.adapter.sha256,
    parent,
    sampler: step === 0 ? null : describeSamplers(run, manifest, parent),
    platform: describePlatform(manifest.platform),
  };
}

function describeParent(facts: RunInStore, { run, branch, step }: StepPlace, { parent }: Manifest): string | null {
  if (parent === null) return null;
  // The first commit of a fork has the checkpoint of another run as its parent.
  const forked = facts.file.parent;
  if (step === 0) return forked === null ? null : policyName(forked);
  return policyName({ run, branch: branchOfStep(lineageOf(facts, branch), parent.step), step: parent.step });
}

function describeSamplers(run: string, { samplers }: Manifest, parent: string | null): string | null {
  if (samplers === undefined) return parent;
  return samplers
    .map((each) =>
      each.foreign ? `a checkpoint of another run (${each.adapterSha256.slice(0, 12)})` : policyName({ run, ...each }),
    )
    .join(', ');
}

/** `Intel Xeon, 2 threads, python 3.11.7, torch 2.13.0` */
function describePlatform({ cpu, threads, ...versions }: Manifest['platform']): string {
  const named = Object.entries(versions).map(([name, value]) => `${name} ${value}`);
  return [...(cpu === undefined ? [] : [cpu]), ...(threads === undefined ? [] : [`${threads} threads`]), ...named].join(
    ', ',
  );
}

function warnOfStep({ step }: StepPlace, summary: StepSummary | null): string[] {
  if (summary === null) return [];
  const { unused, replacedGroups } = summary;
  const skipped = isSkipped(summary) ? [describeSkipped(step, unused)] : [];
  const left =
    Object.keys(unused).length > 0 && skipped.length === 0 ? [`not trained: ${describeUnused(unused, false)}`] : [];
  const replaced =
    replacedGroups > 0
      ? [
          `${plural(replacedGroups, 'group')} without signal ${replacedGroups === 1 ? 'was' : 'were'} replaced by others`,
        ]
      : [];
  return [...skipped, ...left, ...replaced, ...warnOfTraining([summary]).map(({ text }) => text)];
}
