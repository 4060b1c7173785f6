import type { Command } from '../command.ts';
import { ENGINE_OPTIONS } from '../engine-flags.ts';
import { RUN_OPTIONS } from '../train/run-flags.ts';

export const train: Command = {
  name: 'train',
  summary: 'start a run, or go on with it; shows progress until it ends',
  usage: 'train AGENT [--run NAME] --base-model MODEL [flags]',
  details: [
    'AGENT is a file that exports defineAgent({ … }) by default. The run goes on where it was if its name exists;',
    'a run that is complete shows its result. Ctrl-C detaches (exit code 130): the same command goes on.',
  ],
  examples: [
    'temper train examples/tic-tac-toe/agent.ts --base-model pocket --steps 100',
    'temper train agent.ts --base-model Qwen/Qwen3-4B --steps 200 --group-size 8',
  ],
  positionals: ['AGENT'],
  options: {
    run: { type: 'string', placeholder: 'NAME', description: "name of the run; absent: the agent's name" },
    ...RUN_OPTIONS,
    ...ENGINE_OPTIONS,
  },
  async run(context) {
    const { planRun } = await import('../train/plan-run.ts');
    const { playRun } = await import('../train/play-run.ts');
    return playRun(context, await planRun(context));
  },
};
