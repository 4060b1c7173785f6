import { planPrune, prune, type PrunePlan, type Retention } from '../../store/records/prune.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { formatBytes, plural } from '../../core/format.ts';
import { printJson } from '../terminal/output.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { CheckpointsContext } from './command.ts';

export function pruneCheckpoints(context: CheckpointsContext, run: string): Promise<number> {
  return removeWeights(context, run, parseRetention(context.flags));
}

/** Removes weights and prints which ones; --dry-run only prints. */
export async function removeWeights(
  { flags, project, env, output }: CheckpointsContext,
  run: string,
  chosen: Parameters<typeof prune>[2],
): Promise<number> {
  const store = await openProjectStore(project, env);
  const isDry = flags['dry-run'];
  const plan = await (isDry ? planPrune : prune)(store, run, chosen);
  const shown = 'steps' in chosen ? { ...plan, kept: [] } : plan;
  if (flags.json) printJson(output, removalJson(shown, isDry));
  else for (const line of describeRemoval(shown, isDry)) output.line(line);
  return EXIT.ok;
}

/** Retention rules. There is no default, because the command removes data. */
function parseRetention(flags: CheckpointsContext['flags']): Retention {
  const { 'keep-last': last, 'keep-every': every, 'keep-best': best } = flags;
  if (last === null && every === null && best.length === 0)
    throw new UsageError(
      'prune needs to know what to keep; pass --keep-last N, --keep-best METRIC:N or --keep-every N',
    );
  return { keepLast: last ?? 0, keepEvery: every, keepBest: best.map(parseBest) };
}

function parseBest(text: string): { metric: string; count: number } {
  const [, metric, count] = /^(.+):(0*[1-9]\d*)$/.exec(text) ?? [];
  if (metric !== undefined) return { metric, count: Number(count) };
  throw new UsageError(`--keep-best must be METRIC:N, got ${JSON.stringify(text)}; pass --keep-best reward:3`);
}

const nameOf = ({ branch, step }: { branch: number; step: number }): string =>
  branch === 0 ? String(step) : `${branch}/${step}`;

function removalJson({ pruned, kept, blobs, bytes }: PrunePlan, isDry: boolean): object {
  return {
    dryRun: isDry,
    pruned: pruned.map(({ branch, step }) => ({ branch, step })),
    kept: kept.map(({ checkpoint: { branch, step }, because }) => ({ branch, step, because })),
    removedBlobs: blobs.map(({ sha256 }) => sha256),
    removedBytes: bytes,
  };
}

function describeRemoval({ pruned, kept, blobs, bytes }: PrunePlan, isDry: boolean): string[] {
  const [go, went] = isDry ? ['would be removed', 'would be'] : ['removed', 'were'];
  return [
    ...kept.map(({ checkpoint, because }) => `kept    ${nameOf(checkpoint)}: ${because}`),
    ...(pruned.length === 0 ? [] : [`pruned  ${pruned.map(nameOf).join(', ')}`]),
    pruned.length === 0
      ? 'nothing to prune'
      : `weights of ${plural(pruned.length, 'checkpoint')} ${go}; ${plural(blobs.length, 'blob')} with ${formatBytes(bytes)} ${went} deleted`,
  ];
}
