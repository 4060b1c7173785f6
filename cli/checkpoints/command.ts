import { CHECKPOINT_ARGUMENT, CHECKPOINT_HELP } from '../command-line/checkpoint-names.ts';
import { defineCommand, JSON_FLAG, type CommandContext } from '../command-line/command.ts';

export const checkpointsCommand = defineCommand({
  name: 'checkpoints',
  summary: "list a run's checkpoints, copy the run to or from another store, or remove old weights",
  usage: 'CHECKPOINT [push STORE | pull STORE | prune --keep-last N] [--json]',
  details: [
    'Without an action it lists the committed steps of RUN, or shows the one that CHECKPOINT names. push and pull copy the',
    "whole run between the project's store and STORE (a folder or a URI). They skip what exists, continue an interrupted",
    'copy, and pull repairs damaged objects. prune removes weights and optimizer states that nothing needs; manifests,',
    'rollouts and verdicts stay. Needs no server.',
    ...CHECKPOINT_HELP,
  ],
  examples: [
    'temper checkpoints demo@best',
    'temper checkpoints demo push /mnt/backup/store',
    'temper checkpoints demo prune --keep-last 3 --keep-best reward:2 --dry-run',
  ],
  arguments: {
    checkpoint: CHECKPOINT_ARGUMENT,
    action: { placeholder: 'ACTION', choices: ['push', 'pull', 'prune'], optional: true },
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
    'dry-run': { kind: 'boolean', description: 'prune: only show what would be removed' },
    'with-pruned': { kind: 'boolean', description: 'push, pull: also copy weights that were pruned in the target' },
    json: JSON_FLAG,
  },
});

export type CheckpointsContext = CommandContext<typeof checkpointsCommand>;
