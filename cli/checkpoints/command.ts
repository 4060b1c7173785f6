import {
  CHECKPOINT_ARGUMENT,
  CHECKPOINT_HELP,
  JSON_FLAG,
  defineCommand,
  type CommandContext,
} from '../command-line/command.ts';
import { readCheckpointName } from '../command-line/values.ts';
import { UsageError } from '../command-line/errors.ts';

export const checkpointsCommand = defineCommand({
  name: 'checkpoints',
  summary: "list a run's checkpoints, copy the run to or from another store, or remove weights or the run",
  usage: 'CHECKPOINT [push|pull STORE | prune --keep-last N | delete --step N|--all] [--json]',
  details: [
    'Without an action it lists the committed steps of RUN, or shows the one that CHECKPOINT names. push and pull copy the',
    "whole run between the project's store and STORE (a folder or a URI). They skip what exists, continue an interrupted",
    'copy, and pull repairs damaged objects. prune removes weights and optimizer states that nothing needs; manifests,',
    'rollouts and verdicts stay. delete --step does so for the steps of RUN (or RUN~BRANCH) that you name, and refuses those',
    'that something needs. delete --all removes a run that has ended, with all it recorded. Needs no server.',
    ...CHECKPOINT_HELP,
  ],
  examples: [
    'temper checkpoints demo@best',
    'temper checkpoints demo push /mnt/backup/store',
    'temper checkpoints demo prune --keep-last 3 --keep-best reward:2 --dry-run',
    'temper checkpoints demo delete --step 3,7-20',
  ],
  arguments: {
    checkpoint: CHECKPOINT_ARGUMENT,
    action: { placeholder: 'ACTION', choices: ['push', 'pull', 'prune', 'delete'], optional: true },
    store: { placeholder: 'STORE', optional: true },
  },
  flags: {
    'keep-last': {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'prune: keep the newest N of each branch',
    },
    'keep-best': {
      kind: 'texts',
      placeholder: 'METRIC:N',
      description: 'prune: keep the N best by an evaluation metric; repeatable',
    },
    'keep-every': { kind: 'integer', minimum: 1, placeholder: 'N', description: 'prune: keep every Nth step' },
    step: { kind: 'ranges', placeholder: 'N,M-K', description: 'delete: remove the weights of these steps' },
    all: { kind: 'boolean', description: 'delete: remove the whole run' },
    'with-production': {
      kind: 'boolean',
      description: 'delete --all: also remove what was recorded under its name, feedback and promotions',
    },
    'dry-run': { kind: 'boolean', description: 'prune, delete: only show what would be removed' },
    'with-pruned': { kind: 'boolean', description: 'push, pull: also copy weights that were pruned in the target' },
    json: JSON_FLAG,
  },
  async run(context): Promise<number> {
    const { checkpoint, action, store } = context.args;
    checkFlags(context, action ?? 'list');
    const name = readCheckpointName(checkpoint);
    const { run } = name;
    if (action === null) return (await import('./list.ts')).showCheckpoints(context, name, checkpoint === run);
    if (action === 'delete') {
      if (store !== null) throw ownStoreAlone(action, store);
      return (await import('./delete.ts')).deleteWeights(context, name);
    }
    if (checkpoint !== run)
      throw new UsageError(`${action} works on a whole run, got ${JSON.stringify(checkpoint)}; pass ${run}`);
    if (action === 'prune') {
      if (store === null) return (await import('./prune.ts')).pruneCheckpoints(context, run);
      throw ownStoreAlone(action, store);
    }
    if (store !== null) return (await import('./copy.ts')).copyCheckpoints(context, run, action, store);
    throw new UsageError(`STORE is missing; usage: temper checkpoints RUN ${action} STORE`);
  },
});

export type CheckpointsContext = CommandContext<typeof checkpointsCommand>;

type Flag = keyof CheckpointsContext['flags'];

/** Flags that each action takes. */
const FLAGS = {
  list: ['json'],
  push: ['with-pruned', 'json'],
  pull: ['with-pruned', 'json'],
  prune: ['keep-last', 'keep-best', 'keep-every', 'dry-run', 'json'],
  delete: ['step', 'all', 'with-production', 'dry-run', 'json'],
} satisfies Record<string, readonly Flag[]>;
type Action = keyof typeof FLAGS;

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
