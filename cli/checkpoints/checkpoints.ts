import { readCheckpointName } from '../command-line/checkpoint-names.ts';
import { UsageError } from '../command-line/errors.ts';
import type { CheckpointsContext } from './command.ts';
import { copyCheckpoints } from './copy.ts';
import { deleteWeights } from './delete.ts';
import { showCheckpoints } from './list.ts';
import { pruneCheckpoints } from './prune.ts';

type Flag = keyof CheckpointsContext['flags'];

/** Which flags mean something to which action. */
const FLAGS = {
  list: ['json'],
  push: ['with-pruned', 'json'],
  pull: ['with-pruned', 'json'],
  prune: ['keep-last', 'keep-best', 'keep-every', 'dry-run', 'json'],
  delete: ['step', 'all', 'dry-run', 'json'],
} satisfies Record<string, readonly Flag[]>;
type Action = keyof typeof FLAGS;

export function checkpoints(context: CheckpointsContext): Promise<number> {
  const { checkpoint, action, store } = context.args;
  checkFlags(context, action ?? 'list');
  const name = readCheckpointName(checkpoint);
  const { run } = name;
  if (action === null) return showCheckpoints(context, name, checkpoint === run);
  if (action === 'delete') {
    if (store !== null) throw ownStoreAlone(action, store);
    return deleteWeights(context, name);
  }
  if (checkpoint !== run)
    throw new UsageError(`${action} works on a whole run, got ${JSON.stringify(checkpoint)}; pass ${run}`);
  if (action === 'prune') {
    if (store === null) return pruneCheckpoints(context, run);
    throw ownStoreAlone(action, store);
  }
  if (store !== null) return copyCheckpoints(context, run, action, store);
  throw new UsageError(`STORE is missing; usage: temper checkpoints RUN ${action} STORE`);
}

function ownStoreAlone(action: Action, store: string): UsageError {
  return new UsageError(
    `${action} works on the project's own store, got ${JSON.stringify(store)}; remove that argument`,
  );
}

function checkFlags({ flags }: CheckpointsContext, action: Action): void {
  const own: readonly string[] = FLAGS[action];
  const idle = Object.entries(flags).find(([name, value]) => isGiven(value) && !own.includes(name))?.[0];
  if (idle === undefined) return;
  const owner = Object.entries(FLAGS).find(([, names]: [string, readonly string[]]) => names.includes(idle))?.[0];
  throw new UsageError(
    `--${idle} has no effect here, it is a flag of ${owner}; write temper checkpoints RUN ${owner} --${idle}`,
  );
}

function isGiven(value: CheckpointsContext['flags'][Flag]): boolean {
  return typeof value === 'object' && value !== null ? value.length > 0 : value !== null && value !== false;
}
