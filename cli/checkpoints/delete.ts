import type { CheckpointName } from '../../core/policy-name.ts';
import { deleteRun, planRunDeletion, type RunDeletion } from '../../store/records/delete-run.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { formatBytes, plural } from '../../core/format.ts';
import { printJson } from '../terminal/output.ts';
import type { CheckpointsContext } from './command.ts';
import { removeWeights } from './prune.ts';

/** Deletes the weights of the named steps, or a run with all that it recorded. */
export function deleteWeights(context: CheckpointsContext, { run, branch }: CheckpointName): Promise<number> {
  const { step: steps, all } = context.flags;
  const { checkpoint } = context.args;
  if (checkpoint.includes('@'))
    throw new UsageError(
      `delete takes steps by flag, got ${JSON.stringify(checkpoint)}; pass ${run} delete --step N, or --all`,
    );
  if (steps === null && !all)
    throw new UsageError('delete needs to know what to remove; pass --step N,M-K, or --all for the whole run');
  if (steps !== null && all) throw new UsageError('--step and --all cannot be combined; pass one of them');
  if (context.flags['with-production'] && !all)
    throw new UsageError('--with-production has no effect without --all; pass --all, too');
  if (steps !== null) return removeWeights(context, run, { branch, steps });
  if (branch !== null)
    throw new UsageError(`--all removes a run with all its branches, got ${JSON.stringify(checkpoint)}; pass ${run}`);
  return deleteWhole(context, run);
}

async function deleteWhole({ flags, project, env, output }: CheckpointsContext, run: string): Promise<number> {
  const store = await openProjectStore(project, env);
  const isDry = flags['dry-run'];
  const plan = await (isDry ? planRunDeletion : deleteRun)(store, run, flags['with-production']);
  const { objects, blobs, bytes, leftBecause } = plan;
  if (flags.json) {
    const removedBlobs = blobs.map(({ key }) => key.slice(key.lastIndexOf('/') + 1));
    printJson(output, { dryRun: isDry, run, objects: objects.length, removedBlobs, removedBytes: bytes, leftBecause });
  } else for (const line of describeRun(run, plan, isDry)) output.line(line);
  return EXIT.ok;
}

function describeRun(run: string, { objects, blobs, bytes, leftBecause }: RunDeletion, isDry: boolean): string[] {
  const went = isDry ? 'would be deleted' : 'was deleted';
  return [
    `${run} ${went}: ${plural(objects.length, 'object')} and ${plural(blobs.length, 'blob')} with ${formatBytes(bytes)}`,
    ...(leftBecause === null ? [] : [`its blobs are left to temper gc, because ${leftBecause}`]),
  ];
}
