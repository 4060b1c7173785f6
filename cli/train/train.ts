import type { Command } from '../command-line/command.ts';
import { ENGINE_OPTIONS, engineFlags } from '../command-line/engine-flags.ts';
import { RUN_OPTIONS } from './run-flags.ts';

export const train: Command = {
  name: 'train',
  summary: 'start a training run or continue it, and show its progress',
  usage: 'train AGENT [--run NAME] --base-model MODEL [flags]',
  details: [
    'AGENT is a file whose default export is defineAgent({ … }). If a run of this name exists, it continues; if that run',
    'is complete, you see its result. Ctrl-C stops watching (exit code 130): run the same command to continue.',
  ],
  examples: [
    'temper train examples/tic-tac-toe/agent.ts --base-model pocket --steps 100',
    'temper train agent.ts --base-model Qwen/Qwen3-4B --steps 200 --group-size 8',
  ],
  positionals: ['AGENT'],
  options: {
    run: { type: 'string', placeholder: 'NAME', description: "name of the run; default: the agent's name" },
    ...RUN_OPTIONS,
    ...ENGINE_OPTIONS,
  },
  async run(context) {
    const { readPlannedRun } = await import('./read-planned-run.ts');
    const { playRun } = await import('./play-run.ts');
    const asked = engineFlags(context.flags);
    return playRun(context, await readPlannedRun(context), asked);
  },
};
