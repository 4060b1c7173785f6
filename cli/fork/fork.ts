import type { Command } from '../command-line/command.ts';
import { ENGINE_OPTIONS, engineFlags } from '../command-line/engine-flags.ts';
import { RUN_OPTIONS } from '../train/run-flags.ts';

export const fork: Command = {
  name: 'fork',
  summary: 'start a run from a checkpoint of another run, without copying it',
  usage: 'fork RUN@STEP AGENT --run NEW [flags]',
  details: [
    'The new run starts with the adapter and the optimizer state of RUN@STEP (or RUN~BRANCH@STEP, or RUN@latest) and',
    'counts its own steps from 1. It has the configuration of RUN, changed by the flags you pass. Base model and LoRA',
    'settings cannot change. If a run of this name exists, it continues; Ctrl-C stops watching (exit code 130).',
  ],
  examples: [
    'temper fork demo@40 examples/tic-tac-toe/agent.ts --run demo-slow --learning-rate 1e-3',
    'temper fork demo@latest agent.ts --run demo-more --steps 50 --seed 2',
  ],
  positionals: ['RUN@STEP', 'AGENT'],
  options: {
    run: { type: 'string', placeholder: 'NEW', description: 'name of the new run' },
    // A default here would be a lie: what is absent is the parent's.
    ...Object.fromEntries(
      Object.entries(RUN_OPTIONS).map(([flag, option]) => [
        flag,
        { ...option, description: option.description.replace(/ \[[^[]*\]$/, '') },
      ]),
    ),
    ...ENGINE_OPTIONS,
  },
  async run(context) {
    const { readPlannedFork } = await import('./read-planned-fork.ts');
    const { playRun } = await import('../train/play-run.ts');
    const asked = engineFlags(context.flags);
    return playRun(context, await readPlannedFork(context), asked);
  },
};
