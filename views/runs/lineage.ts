/** Branches of a run, the checkpoints that it continues, and the runs that continue it. */
import type { Checkpoint } from '../../core/contract.ts';
import { readBranches } from '../../store/records/lineage.ts';
import type { LineageNode } from '../api/run-views.ts';
import type { ViewContext } from '../context/context.ts';
import { lastStepOf } from './curve.ts';
import { runCacheOf, type RunHead } from './run-cache.ts';
import { readForks } from './runs.ts';

/** Runs that a run continues, one after the other. */
const MOST_ANCESTORS = 20;

/** Ancestors first, then the run's branches, then its forks. */
export async function viewLineage(context: ViewContext, head: RunHead): Promise<LineageNode[]> {
  const [ancestors, forks] = await Promise.all([readAncestorRuns(context, head), readForks(context, head.run)]);
  const own = await branchNodes(context, head);
  return [...ancestors.map(nodeOfFork), ...own, ...forks.map(nodeOfFork)];
}

/** Oldest first. */
async function readAncestorRuns({ store }: ViewContext, head: RunHead): Promise<RunHead[]> {
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

async function branchNodes({ store }: ViewContext, { run, file, state }: RunHead): Promise<LineageNode[]> {
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
