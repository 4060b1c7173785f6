import { defineCommand, JSON_FLAG, type CommandContext } from '../command-line/command.ts';
import { takenBy } from '../planning/production-flags.ts';
import { trainCommand } from '../train/command.ts';

export const estimateCommand = defineCommand({
  name: 'estimate',
  summary: 'estimate tokens, time and cost of a training run before it starts',
  usage: '[AGENT] --base-model MODEL [flags of temper train] [--probe | --like RUN]',
  details: [
    'Takes the arguments and flags of temper train, and measures a former run of the same agent and base model, or with',
    '--probe a run of four steps that it plays first. For a run that has begun, it estimates what is left.',
    'Each number is a range. What has no price is named, and is not in the sum.',
  ],
  examples: [
    'temper estimate examples/tic-tac-toe/agent.ts --base-model pocket --steps 100 --probe',
    'temper estimate agent.ts --base-model Qwen/Qwen3-4B --steps 200 --gpu-usd-per-hour 3 --like demo',
  ],
  arguments: trainCommand.arguments,
  flags: {
    ...trainCommand.flags,
    probe: {
      kind: 'boolean',
      description:
        'play four steps and measure them; they are kept as the run probe-HASH, which the same command uses again',
    },
    like: { kind: 'text', placeholder: 'RUN', description: 'run to measure', default: 'the most similar one' },
    json: JSON_FLAG,
  },
  projectFlags: async (environment, flags, words) =>
    (await import('../planning/project-flags.ts')).readProjectFlags(environment, takenBy(flags, words)),
  run: async (context): Promise<number> => (await import('./estimate.ts')).estimate(context),
});

export type EstimateContext = CommandContext<typeof estimateCommand>;
