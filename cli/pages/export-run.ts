/** Answers of one run for an export: its overview whole, and the attempts of some of its steps. */
import { formatGroupId } from '../../core/names/attempt-id.ts';
import { branchOfStep } from '../../core/names/lineage.ts';
import { plural } from '../../core/reports/format.ts';
import type { AttemptRow, AttemptsView, GroupView, StepView } from '../../views/api/attempt-views.ts';
import type { CurveView, RunView } from '../../views/api/run-views.ts';
import { GROUPS_OF_STEP, planAttemptSets, type AttemptSet } from '../../views/charts/attempt-sets.ts';
import { NotFound } from '../../views/context/context.ts';

/** Answer of a view by its path. */
export type AskView = (path: string) => Promise<object>;

/** Where answers are kept, by the path for which pages ask, below `/api/`. */
export interface AnswerSink {
  /** Of all answers so far. */
  readonly bytes: number;
  add(path: string, answer: object): Promise<void>;
  /** What comes next is needed at another time. */
  flush(): Promise<void>;
}

export interface ExportBounds {
  /** Bytes of answers of one run; after that no attempts are added. */
  readonly runBytes: number;
  /** Each step has a page, and each shown attempt one with its tokens. */
  readonly isWhole: boolean;
}

/** A site that a person can send to others. */
export const SITE_BOUNDS: ExportBounds = { runBytes: 40 * 1024 ** 2, isWhole: true };
/** Attempts of a group that have pages of their own. */
const ATTEMPTS_OF_GROUP = 32;
/** Rows of the list of attempts. */
const MOST_ROWS = 500;

const OVERVIEW = ['/lanes', '/checkpoints', '/agreement'];

/** Returns what was left out, in words; null: nothing. */
export async function exportRun(
  run: string,
  ask: AskView,
  sink: AnswerSink,
  bounds: ExportBounds,
): Promise<string | null> {
  const start = `runs/${encodeURIComponent(run)}`;
  const site: RunSite = { start, ask, sink, bounds, firstBytes: sink.bytes, rows: [] };
  const view = (await ask(start)) as RunView;
  const curve = (await ask(`${start}/curve`)) as CurveView;
  await sink.add(`${start}/curve`, curve);
  for (const part of OVERVIEW) await addIfThere(site, `${start}${part}`);
  await sink.flush();
  const sets = planAttemptSets(curve, view.state);
  const added: (Counted | null)[] = [];
  for (const set of sets) {
    added.push(await addSet(site, set));
    await sink.flush();
  }
  const others = curve.steps.filter(({ step }) => !sets.some((set) => set.kind === 'step' && set.step === step));
  if (bounds.isWhole)
    for (const { step } of others) await addStep(site, { step, branch: branchOfStep(view.state?.lineage ?? [], step) });
  const listed = await addRows(site, curve);
  // Only attempts that are here are evidence here.
  const isHere = (id: string): boolean => listed.rows.some((row) => row.id === id);
  const advisories = view.advisories.map((each) => ({ ...each, attempts: each.attempts.filter(isHere) }));
  await sink.add(start, { ...view, advisories });
  const leftOut = [
    ...describeLeftOut(curve, sets, added),
    ...(listed.rows.length < listed.total ? [`${listed.rows.length} of ${listed.total} rows of attempts`] : []),
  ];
  return leftOut.length === 0 ? null : `${run}: ${leftOut.join(', ')}`;
}

/** Groups of a step. */
interface Counted {
  readonly shown: number;
  readonly all: number;
}

interface RunSite {
  readonly start: string;
  readonly ask: AskView;
  readonly sink: AnswerSink;
  readonly bounds: ExportBounds;
  readonly firstBytes: number;
  /** Of the attempts that are shown. */
  readonly rows: AttemptRow[];
}

/** Null: the store has no attempts of it. */
async function addSet(site: RunSite, set: AttemptSet): Promise<Counted | null> {
  const isEval = set.kind === 'eval';
  const own = isEval ? [{ ...set, group: null }] : ((await addStep(site, set))?.groups ?? []);
  let shown = 0;
  let isThere = false;
  for (const id of own.slice(0, GROUPS_OF_STEP).map(formatGroupId)) {
    const hasRoom = site.sink.bytes - site.firstBytes < site.bounds.runBytes;
    const isAdded = hasRoom && (await addGroup(site, id));
    isThere ||= isAdded || !hasRoom;
    shown += Number(isAdded);
  }
  if (!isThere) return null;
  return isEval ? { shown: 0, all: 0 } : { shown, all: own.length };
}

/** Under both of its addresses: the branch of the run's own step is left out in most. */
async function addStep(site: RunSite, { branch, step }: Pick<AttemptSet, 'branch' | 'step'>): Promise<StepView | null> {
  const path = `${site.start}/steps/${step}`;
  const view = (await addIfThere(site, `${path}?branch=${branch}`)) as StepView | null;
  if (view !== null) await site.sink.add(path, view);
  return view;
}

/** The group, and each of its attempts with its tokens. */
async function addGroup(site: RunSite, id: string): Promise<boolean> {
  const { start, bounds, rows } = site;
  const group = (await addIfThere(site, `${start}/groups/${id}`)) as GroupView | null;
  if (group === null) return false;
  rows.push(...group.attempts.map(({ row }) => row));
  if (bounds.isWhole)
    for (const { row } of group.attempts.slice(0, ATTEMPTS_OF_GROUP)) {
      await addIfThere(site, `${start}/attempts/${row.id}`);
      await addIfThere(site, `${start}/attempts/${row.id}/tokens`);
    }
  return true;
}

/** The list of attempts: the newest ones, or those that are shown. */
async function addRows({ start, ask, sink, bounds, rows }: RunSite, curve: CurveView): Promise<AttemptsView> {
  const own = (): AttemptsView => {
    const total = Math.max(
      rows.length,
      sum([...curve.steps, ...curve.evals], (each) => each.attempts),
    );
    return { total, rows, excerpts: {}, index: { indexed: 1, known: 1, isComplete: true } };
  };
  const view = bounds.isWhole ? ((await ask(`${start}/attempts?limit=${MOST_ROWS}`)) as AttemptsView) : own();
  await sink.add(`${start}/attempts`, view);
  return view;
}

function describeLeftOut(
  { steps }: CurveView,
  sets: readonly AttemptSet[],
  added: readonly (Counted | null)[],
): string[] {
  const shownSteps = sets.filter(({ kind }) => kind === 'step').length;
  const played = steps.filter(({ examples }) => examples === undefined).length;
  const [shown, all] = [sum(added, (each) => each?.shown ?? 0), sum(added, (each) => each?.all ?? 0)];
  const missing = sets.filter((_, index) => added[index] === null);
  return [
    ...(shownSteps < played ? [`${shownSteps} of ${plural(played, 'step')}`] : []),
    ...(shown < all ? [`${shown} of ${plural(all, 'group')}`] : []),
    ...missing.map(({ kind, step }) => `none of ${kind === 'eval' ? 'the evaluation after ' : ''}step ${step}`),
  ];
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

/** Null if there is no such thing, such as the group of a step that was never played. */
async function addIfThere({ ask, sink }: RunSite, path: string): Promise<object | null> {
  try {
    const answer = await ask(path);
    await sink.add(path, answer);
    return answer;
  } catch (error) {
    if (error instanceof NotFound) return null;
    throw error;
  }
}
