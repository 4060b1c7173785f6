/** Finds the groups of a run that the index has not read yet. */
import pLimit from 'p-limit';
import { branchesPrefix, groupsPrefix, stepPrefix, stepsPrefix, type StepPlace } from '../../store/layout.ts';
import { childNames, childNumbers } from '../../store/records/children.ts';
import type { Store } from '../../store/store.ts';

/** A group, or an evaluation, to be read. */
export interface UnreadGroup {
  readonly branch: number;
  readonly step: number;
  /** Null: an evaluation. */
  readonly group: number | null;
  readonly isJudged: boolean;
}

export interface Unread {
  /** The newest first. */
  readonly groups: readonly UnreadGroup[];
  /** Steps to which nothing can be added, once these groups are read. */
  readonly settled: readonly { readonly branch: number; readonly step: number }[];
}

/** The index, as far as it decides what is new. */
export interface Indexed {
  /** Whether the group was read, with its verdict if `isJudged`. */
  has(group: UnreadGroup): boolean;
  isSettled(branch: number, step: number): boolean;
}

const LISTED_AT_ONCE = 32;
/**
 * The newest steps are listed each time: steps may be played ahead of training, and an evaluation follows its commit.
 * A group may wait for its reward over more steps, but then it has no verdict, which keeps its step open.
 */
const OPEN_STEPS = 4;

export async function findUnread(store: Store, run: string, indexed: Indexed): Promise<Unread> {
  const branches = await childNumbers(store, branchesPrefix(run));
  const steps = await Promise.all(branches.map(async (branch) => openSteps(store, run, branch, indexed)));
  const limit = pLimit(LISTED_AT_ONCE);
  const listed = await Promise.all(steps.flat().map((step) => limit(() => listStep(store, step, indexed))));
  return {
    groups: listed.flatMap(({ groups }) => groups).toSorted((a, b) => b.branch - a.branch || b.step - a.step),
    settled: listed.flatMap(({ place, isSettled }) => (isSettled ? [place] : [])),
  };
}

interface OpenStep extends StepPlace {
  /** One of the newest of its branch. */
  readonly isNew: boolean;
}

async function openSteps(store: Store, run: string, branch: number, indexed: Indexed): Promise<OpenStep[]> {
  const steps = await childNumbers(store, stepsPrefix(run, branch));
  const newest = steps.at(-1) ?? 0;
  return steps
    .filter((step) => !indexed.isSettled(branch, step))
    .map((step) => ({ run, branch, step, isNew: step > newest - OPEN_STEPS }));
}

async function listStep(
  store: Store,
  { isNew, ...place }: OpenStep,
  indexed: Indexed,
): Promise<{ place: StepPlace; groups: UnreadGroup[]; isSettled: boolean }> {
  const { branch, step } = place;
  const [names, files] = await Promise.all([
    childNames(store, stepPrefix(place)),
    childNames(store, groupsPrefix(place)),
  ]);
  const judged = new Set(files.flatMap((name) => /^(\d+)\.judged\.json$/.exec(name)?.[1] ?? []));
  const played = files.flatMap((name) => /^(\d+)\.rollouts\.jsonl\.gz$/.exec(name)?.[1] ?? []);
  const groups = [
    ...played.map((group) => ({ branch, step, group: Number(group), isJudged: judged.has(group) })),
    ...(names.includes('eval.rollouts.jsonl.gz') ? [{ branch, step, group: null, isJudged: true }] : []),
  ];
  const isOver = names.includes('verdict.json') || names.includes('manifest.json');
  const isSettled = !isNew && isOver && groups.every(({ isJudged }) => isJudged);
  return { place, groups: groups.filter((group) => !indexed.has(group)), isSettled };
}
