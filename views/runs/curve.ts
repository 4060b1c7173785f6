/** A run's curve along a branch and those that it continues. */
import pLimit from 'p-limit';
import type { Branch, EvalResult, StepSummary } from '../../core/contract/contract.ts';
import { estimateMean } from '../../core/numbers/statistics.ts';
import { branchOfStep, planLineage } from '../../core/names/lineage.ts';
import { stepPrefix, stepsPrefix } from '../../store/layout.ts';
import { childNames, childNumbers } from '../../store/records/children.ts';
import { readBranchCurve } from '../../store/records/runs/curve.ts';
import { readBranches } from '../../store/records/runs/lineage.ts';
import { readEval } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { CurveView } from '../api/run-views.ts';
import { NotFound, type ViewContext } from '../context/context.ts';
import { readCount } from '../api/query.ts';
import { requireHead, runCacheOf, type RunHead } from './run-cache.ts';

const READ_AT_ONCE = 32;
/** An interval of older evaluations is left out beyond. */
const MOST_EVAL_ATTEMPTS = 50_000;

/** Part of a curve: `branch` from `fromStep` to `toStep`, both included. */
interface Part {
  readonly branch: number;
  readonly fromStep: number;
  readonly toStep: number;
}

export async function viewCurve(context: ViewContext, run: string, query: URLSearchParams): Promise<CurveView> {
  const [after, branch] = [readCount(query, 'after'), readCount(query, 'branch')];
  const head = await requireHead(context, run);
  const view = await readCurveView(context.store, head, { after: after ?? 0, branch: branch ?? null });
  return { ...view, evalRewards: await readEvalRewards(context, view) };
}

/** Intervals of the evaluations that a curve has. */
async function readEvalRewards(
  { index }: ViewContext,
  view: CurveView,
): Promise<NonNullable<CurveView['evalRewards']>> {
  const [first] = view.evals;
  if (first === undefined) return {};
  const { rows } = await index.search(view.run, { kind: 'eval', fromStep: first.step, limit: MOST_EVAL_ATTEMPTS });
  const rewards = new Map<number, number[]>();
  for (const { branch, step, reward } of rows) {
    const part = view.parts.findLast(({ fromStep }) => step >= fromStep)?.branch ?? 0;
    if (branch === part && reward !== null) addTo(rewards, step, reward);
  }
  const known = view.evals.flatMap(({ step }) => {
    const { low, high } = estimateMean(rewards.get(step) ?? []);
    return Number.isFinite(low) ? [[step, [low, high] as const] as const] : [];
  });
  return Object.fromEntries(known);
}

export async function readCurveView(
  store: Store,
  head: RunHead,
  { after = 0, branch = null }: { readonly after?: number; readonly branch?: number | null } = {},
): Promise<CurveView> {
  const { run, state } = head;
  const newest = state?.branch ?? 0;
  const isNewest = branch === null || branch === newest;
  const { lineage, steps, evals } = await (isNewest ? readNewest(store, head) : readOld(store, head, branch));
  const isShown = ({ step }: { readonly step: number }) => after === 0 || step > after;
  return {
    run,
    branch: branch ?? newest,
    steps: steps.filter(isShown),
    evals: evals.filter(isShown),
    parts: partsOf(lineage, Infinity).map(({ branch: of, fromStep }) => ({ branch: of, fromStep })),
  };
}

interface BranchCurve extends Pick<CurveView, 'steps' | 'evals'> {
  readonly lineage: readonly Branch[];
}

async function readNewest(store: Store, head: RunHead): Promise<BranchCurve> {
  const { lineage, evals } = head.state ?? { lineage: [], evals: [] };
  return { lineage, evals, steps: await runCacheOf(store).readSteps(head) };
}

async function readOld(store: Store, head: RunHead, branch: number): Promise<BranchCurve> {
  const lineage = await readOldLineage(store, head.run, branch);
  const [steps, evals] = await Promise.all([
    readOldSteps(store, head.run, lineage),
    readOldEvals(store, head, lineage),
  ]);
  return { lineage, steps, evals };
}

function addTo(rewards: Map<number, number[]>, step: number, reward: number): void {
  const known = rewards.get(step);
  if (known === undefined) rewards.set(step, [reward]);
  else known.push(reward);
}

async function readOldLineage(store: Store, run: string, branch: number): Promise<Branch[]> {
  const branches = await readBranches(store, run);
  if (branch === 0) return [];
  const lineage = planLineage(branches, branch);
  if (lineage.length > 0) return lineage;
  const known = [0, ...branches.map((each) => each.branch)].join(', ');
  throw new NotFound(`the run ${run} has no branch ${branch}; its branches: ${known}`);
}

/** Branch 0 begins with step 1, every other one after the step that it continues. */
function partsOf(lineage: readonly Branch[], last: number): Part[] {
  return [{ branch: 0, fromStep: 0 }, ...lineage].map(({ branch, fromStep }, index) => ({
    branch,
    fromStep: fromStep + 1,
    toStep: lineage[index]?.fromStep ?? last,
  }));
}

async function readOldSteps(store: Store, run: string, lineage: readonly Branch[]): Promise<StepSummary[]> {
  const parts = partsOf(lineage, Infinity).map(async ({ branch, fromStep, toStep }) =>
    (await readBranchCurve(store, run, branch)).filter(({ step }) => step >= fromStep && step <= toStep),
  );
  return (await Promise.all(parts)).flat();
}

/** The state tells those of the newest branch alone; the others are beside their steps. */
async function readOldEvals(store: Store, { run, state }: RunHead, lineage: readonly Branch[]): Promise<EvalResult[]> {
  const branch = lineage.at(-1)?.branch ?? 0;
  const shared = (state?.evals ?? []).filter(
    ({ step }) => branchOfStep(lineage, step) === branchOfStep(state?.lineage ?? [], step),
  );
  const first = lineage.at(-1)?.fromStep ?? 0;
  const own = (await childNumbers(store, stepsPrefix(run, branch))).filter((step) => step > first);
  const limit = pLimit(READ_AT_ONCE);
  const known = new Set(shared.map(({ step }) => step));
  const found = await Promise.all(
    own.filter((step) => !known.has(step)).map((step) => limit(() => readEval(store, { run, branch, step }))),
  );
  return [...shared, ...found.filter((result) => result !== null)].toSorted((a, b) => a.step - b.step);
}

/** The last step of each branch that has anything, as its folder tells it. */
export async function lastStepOf(store: Store, run: string, branch: number): Promise<number> {
  const steps = await childNumbers(store, stepsPrefix(run, branch));
  for (const step of steps.toReversed()) {
    const names = await childNames(store, stepPrefix({ run, branch, step }));
    if (names.includes('manifest.json')) return step;
  }
  return 0;
}
