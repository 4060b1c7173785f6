import type { Command, CommandContext } from '../command-line/command.ts';
import { JSON_OPTION } from '../command-line/command.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { closestName } from '../command-line/parse.ts';

const ACTIONS = ['push', 'pull', 'prune'] as const;
type Action = (typeof ACTIONS)[number];

/** Which flags mean something to which action. */
const FLAGS: Readonly<Record<Action | 'list', readonly string[]>> = {
  list: ['json'],
  push: ['with-pruned', 'json'],
  pull: ['with-pruned', 'json'],
  prune: ['keep-last', 'keep-best', 'keep-every', 'dry-run', 'json'],
};

export const checkpoints: Command = {
  name: 'checkpoints',
  summary: "list a run's checkpoints, copy the run to or from another store, or remove old weights",
  usage: 'checkpoints RUN [push STORE | pull STORE | prune --keep-last N] [--json]',
  details: [
    "Without an action it lists committed steps. push and pull copy the whole run between the project's store and STORE (a",
    'folder or a URI). They skip what exists, continue an interrupted copy, and pull repairs damaged objects. prune removes',
    'weights and optimizer states that nothing needs; manifests, rollouts and verdicts stay. Needs no server.',
  ],
  examples: [
    'temper checkpoints demo push /mnt/backup/store',
    'temper checkpoints demo prune --keep-last 3 --keep-best reward:2 --dry-run',
  ],
  positionals: ['RUN'],
  optionalPositionals: ['push|pull|prune', 'STORE'],
  options: {
    'keep-last': { type: 'string', placeholder: 'N', description: 'prune: keep the newest N of each branch' },
    'keep-best': {
      type: 'string',
      multiple: true,
      placeholder: 'METRIC:N',
      description: 'prune: keep the N best by an evaluation metric; repeatable',
    },
    'keep-every': { type: 'string', placeholder: 'N', description: 'prune: keep every Nth step' },
    'dry-run': { type: 'boolean', description: 'prune: only show what would be removed' },
    'with-pruned': { type: 'boolean', description: 'push, pull: also copy weights that were pruned in the target' },
    json: JSON_OPTION,
  },
  async run(context) {
    const action = parseAction(context);
    checkFlags(context, action ?? 'list');
    if (action === null) {
      const { showCheckpoints } = await import('./list.ts');
      return showCheckpoints(context);
    }
    if (action === 'prune') {
      const { pruneCheckpoints } = await import('./prune.ts');
      return pruneCheckpoints(context);
    }
    const { copyCheckpoints } = await import('./copy.ts');
    await copyCheckpoints(context, action, context.positionals[2]!);
    return EXIT.ok;
  },
};

function parseAction({ positionals: [, name, store] }: CommandContext): Action | null {
  if (name === undefined) return null;
  const action = ACTIONS.find((candidate) => candidate === name);
  if (action === undefined) {
    const guess = closestName(name, ACTIONS);
    const remedy = guess === null ? 'see temper checkpoints --help' : `did you mean ${guess}?`;
    throw new UsageError(`checkpoints can be ${ACTIONS.join(', ')}, got ${JSON.stringify(name)}; ${remedy}`);
  }
  if (action === 'prune' && store !== undefined)
    throw new UsageError(`prune works on the project's own store, got ${JSON.stringify(store)}; remove that argument`);
  if (action !== 'prune' && store === undefined)
    throw new UsageError(`STORE is missing; usage: temper checkpoints RUN ${action} STORE`);
  return action;
}

function checkFlags({ flags }: CommandContext, action: Action | 'list'): void {
  const idle = Object.keys(flags).find((flag) => !FLAGS[action].includes(flag));
  if (idle === undefined) return;
  const owner = ACTIONS.find((candidate) => FLAGS[candidate].includes(idle));
  throw new UsageError(
    `--${idle} has no effect here, it is a flag of ${owner}; write temper checkpoints RUN ${owner} --${idle}`,
  );
}
