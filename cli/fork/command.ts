import {
  AGENT_ARGUMENT,
  CHECKPOINT_ARGUMENT,
  CHECKPOINT_HELP,
  defineCommand,
  type CommandContext,
  type Flags,
} from '../command-line/command.ts';
import { ENGINE_FLAGS } from '../command-line/engine-flags.ts';
import { TRACK_FLAGS } from '../command-line/track-flags.ts';
import { RUN_FLAGS } from '../planning/run-flag-table.ts';

export const forkCommand = defineCommand({
  name: 'fork',
  summary: 'start a run from a checkpoint of another run, without copying it',
  details: [
    'The new run starts with the adapter and the optimizer state of CHECKPOINT and counts its own steps from 1. It has',
    'the configuration of RUN, changed by the flags you pass. Base model and LoRA settings cannot change. If a run of',
    'this name exists, it continues; Ctrl-C stops watching (exit code 130).',
    ...CHECKPOINT_HELP,
  ],
  examples: [
    'temper fork demo@40 examples/tic-tac-toe/agent.ts --run demo-slow --learning-rate 1e-3',
    'temper fork demo@best agent.ts --run demo-more --steps 50 --seed 2',
  ],
  arguments: { parent: CHECKPOINT_ARGUMENT, agent: AGENT_ARGUMENT },
  flags: {
    run: {
      kind: 'text',
      placeholder: 'NEW',
      description: 'name of the new run',
      required: 'pass --run NAME, the name of the new run',
    },
    ...withoutDefaults(RUN_FLAGS),
    ...TRACK_FLAGS,
    ...ENGINE_FLAGS,
  },
  absent: {
    adapter:
      'a fork starts from the adapter of its checkpoint; to start from a PEFT adapter, run temper train AGENT --adapter FOLDER',
    'warm-start':
      'a fork starts from the weights of its checkpoint; to start from chats, run temper sft FILE and fork that run',
  },
  async run(context): Promise<number> {
    const { planFork } = await import('./plan-fork.ts');
    const { playRun } = await import('../session/play-run.ts');
    return playRun(context, await planFork(context), context.flags);
  },
});

/** A fork has its parent's values, not the defaults. */
function withoutDefaults<F extends Flags>(flags: F): F {
  const rows = Object.entries(flags).map(([name, flag]) => [name, { ...flag, default: undefined }]);
  return Object.fromEntries(rows) as F;
}

export type ForkContext = CommandContext<typeof forkCommand>;
