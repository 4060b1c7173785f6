import { CHECKPOINT_ARGUMENT, CHECKPOINT_HELP } from '../command-line/checkpoint-names.ts';
import { defineCommand, JSON_FLAG, type CommandContext } from '../command-line/command.ts';

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
    'dry-run': { kind: 'boolean', description: 'prune, delete: only show what would be removed' },
    'with-pruned': { kind: 'boolean', description: 'push, pull: also copy weights that were pruned in the target' },
    json: JSON_FLAG,
  },
});

export type CheckpointsContext = CommandContext<typeof checkpointsCommand>;
