/** One run: where it is, how it is set, what it came from, and what could be wrong with it. */
import type { StepSummary, Checkpoint } from '../../core/contract/contract.ts';
import { readAllChanges, readBranches } from '../../store/records/runs/lineage.ts';
import { readPrepared } from '../../store/records/runs/run-reader.ts';
import type { Advisory, RunView, LineageNode } from '../api/run-views.ts';
import type { AttemptIndex, RunContext } from '../context/context.ts';
import { findStall, usualSeconds, type FoundAdvisory } from './advisories.ts';
import { requireHead, runCacheOf, type RunHead } from './run-cache.ts';
import { COMPARED_ATTEMPTS, listAdvisories, readNewestAttempts } from './stored-advisories.ts';
import { viewRunRow, readForks } from './runs.ts';
import { lastStepOf } from './curve.ts';

const SHOWN_ATTEMPTS = 5;

/** Without an index, advisories name no attempts, and no other run is read for forks. */
type Context = RunContext & { readonly index: AttemptIndex | null };

export async function viewRun(context: Context, run: string): Promise<RunView> {
  const head = await requireHead(context, run);
  const { store } = context;
  const reading = viewRunRow(context, head);
  const [row, { changes }, prepared, lineage, advisories] = await Promise.all([
    reading,
    readAllChanges(store, run),
    readPrepared(store, run),
    viewLineage(context, head),
    reading.then(({ updatedAt }) => viewAdvisories(context, head, updatedAt)),
  ]);
  const { config, versions } = head.file;
  return {
    row: { ...row, advisories: advisories.length },
    state: head.state,
    config,
    versions,
    changes,
    lineage,
    advisories,
    trainScenarios: prepared?.trainScenarios ?? null,
    evalScenarios: prepared?.evalScenarios ?? null,
    evalScenariosOf: prepared?.evalScenariosOf ?? prepared?.evalScenarios ?? null,
  };
}

interface KnownAdvisories {
  /** Step of the run and number of indexed groups. */
  readonly of: string;
  readonly advisories: readonly Advisory[];
}

const known = new WeakMap<RunHead['file'], KnownAdvisories>();

/** With attempts to look at, as far as they are indexed. A stall first, if there is one. */
async function viewAdvisories(context: Context, head: RunHead, updatedAt: string | null): Promise<Advisory[]> {
  const steps = await runCacheOf(context.store).readSteps(head);
  const progressAtMs = updatedAt === null ? null : Date.parse(updatedAt);
  const stall = findStall(head.state, usualSeconds(steps), progressAtMs, context.now());
  const lasting = await lastingAdvisories(context, head, steps);
  return stall === null ? lasting : [await withAttempts(context, head.run, stall), ...lasting];
}

/** Those that change with steps alone: a page that is open asks again and again. */
async function lastingAdvisories(
  context: Context,
  { run, file, state }: RunHead,
  steps: readonly StepSummary[],
): Promise<Advisory[]> {
  const { index, store } = context;
  const of = [state?.branch, state?.step, state?.adapterSha256, index?.progress(run).indexed].join(' ');
  const before = known.get(file);
  if (before?.of === of) return [...before.advisories];
  const newest = { kind: 'train', sort: 'newest', limit: COMPARED_ATTEMPTS } as const;
  const found = await listAdvisories({ state, steps }, async () =>
    index === null ? readNewestAttempts(store, state) : (await index.search(run, newest)).rows,
  );
  const advisories = await Promise.all(found.map((advisory) => withAttempts(context, run, advisory)));
  known.set(file, { of, advisories });
  return advisories;
}

async function withAttempts({ index }: Context, run: string, { look, ...advisory }: FoundAdvisory): Promise<Advisory> {
  const rows =
    look === null || index === null ? [] : (await index.search(run, { ...look, limit: SHOWN_ATTEMPTS })).rows;
  return { ...advisory, attempts: rows.map(({ id }) => id) };
}

/** Runs that a run continues, one after the other. */
const MOST_ANCESTORS = 20;

/** Ancestors first, then the run's branches, then its forks. */
async function viewLineage(context: Context, head: RunHead): Promise<LineageNode[]> {
  const reading = context.index === null ? [] : readForks(context, head.run);
  const [ancestors, forks] = await Promise.all([readAncestorRuns(context, head), reading]);
  const own = await branchNodes(context, head);
  return [...ancestors.map(nodeOfFork), ...own, ...forks.map(nodeOfFork)];
}

/** Oldest first. */
async function readAncestorRuns({ store }: RunContext, head: RunHead): Promise<RunHead[]> {
  const found: RunHead[] = [];
  let parent = head.file.config.parent;
  while (parent && found.length < MOST_ANCESTORS && !found.some(({ run }) => run === parent?.run)) {
    const next = await runCacheOf(store).readHead(parent.run);
    if (next === null) break;
    found.unshift(next);
    parent = next.file.config.parent;
  }
  return found;
}

/** A fork's newest branch stands for all of it. */
function nodeOfFork({ run, file, state }: RunHead): LineageNode {
  const branch = state?.branch ?? 0;
  return {
    id: nodeId(run, branch),
    run,
    branch,
    from: originOf(file.config.parent),
    step: state?.step ?? 0,
    state: state?.state ?? 'starting',
  };
}

async function branchNodes({ store }: RunContext, { run, file, state }: RunHead): Promise<LineageNode[]> {
  const branches = await readBranches(store, run);
  const newest = state?.branch ?? 0;
  const all = [
    { branch: 0, from: originOf(file.config.parent) },
    ...branches.map(({ branch, fromBranch, fromStep }) => ({
      branch,
      from: { id: nodeId(run, fromBranch), step: fromStep },
    })),
  ];
  return Promise.all(
    all.map(async ({ branch, from }): Promise<LineageNode> => {
      const isNewest = branch === newest;
      const step = isNewest ? (state?.step ?? 0) : Math.max(from?.step ?? 0, await lastStepOf(store, run, branch));
      return {
        id: nodeId(run, branch),
        run,
        branch,
        from,
        step,
        state: isNewest ? (state?.state ?? 'starting') : 'stopped',
      };
    }),
  );
}

function originOf(parent: Checkpoint | null): LineageNode['from'] {
  return parent ? { id: nodeId(parent.run, parent.branch), step: parent.step } : null;
}

function nodeId(run: string, branch: number): string {
  return `${run}/${branch}`;
}
