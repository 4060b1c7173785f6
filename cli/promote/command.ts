import {
  CHECKPOINT_ARGUMENT,
  defineCommand,
  JSON_FLAG,
  REASON_FLAG,
  type CommandContext,
} from '../command-line/command.ts';
import { UsageError } from '../command-line/errors.ts';
import { readCheckpointName } from '../command-line/values.ts';

export const promoteCommand = defineCommand({
  name: 'promote',
  summary: "make a checkpoint a run's production, go back to the one before, or list promotions",
  usage: 'CHECKPOINT [--to RUN] [--reason TEXT] | RUN --back | RUN --list [--json]',
  details: [
    'RUN@production then names the checkpoint in every command. temper serve RUN@production follows within seconds: it loads',
    'the checkpoint first, and requests in flight end on the one before. Every promotion stays in the trail, with its time,',
    "its author and the checkpoint's evaluation. A checkpoint in production, and the one before, are never pruned.",
    'Needs no server.',
  ],
  examples: [
    'temper promote demo@best --reason "0.82 on held-out games"',
    'temper promote nightly-3@20 --to demo',
    'temper promote demo --back --reason "it apologises too often"',
  ],
  arguments: { checkpoint: CHECKPOINT_ARGUMENT },
  flags: {
    to: {
      kind: 'text',
      placeholder: 'RUN',
      description: 'run whose production it becomes',
      default: "the checkpoint's own run",
    },
    back: { kind: 'boolean', description: 'return to the checkpoint that was production before' },
    list: { kind: 'boolean', description: 'list all promotions of RUN, the newest last' },
    by: { kind: 'text', placeholder: 'NAME', description: 'who promotes', default: 'the user of this system' },
    reason: { ...REASON_FLAG, description: 'recorded with the promotion' },
    json: JSON_FLAG,
  },
  async run(context): Promise<number> {
    const { back, list } = context.flags;
    const name = readCheckpointName(context.args.checkpoint);
    checkFlags(context, name.run);
    if (list) return (await import('./list-promotions.ts')).listPromotions(context, name.run);
    const { goBack, promote } = await import('./promote.ts');
    return back ? goBack(context, name.run) : promote(context, name);
  },
});

export type PromoteContext = CommandContext<typeof promoteCommand>;

function checkFlags({ flags, args }: PromoteContext, run: string): void {
  const { back, list, to } = flags;
  if (back && list) throw new UsageError('--back changes production and --list only shows it; pass one of them');
  if ((back || list) && (args.checkpoint !== run || to !== null))
    throw new UsageError(`--${back ? 'back' : 'list'} is of a run as a whole; pass ${to ?? run} alone`);
  const idle = list ? (['by', 'reason'] as const).find((name) => flags[name] !== null) : undefined;
  if (idle !== undefined) throw new UsageError(`--${idle} has no effect with --list; leave it out`);
}
