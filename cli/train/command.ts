import { ADAPTER_FLAG, AGENT_ARGUMENT, defineCommand, type CommandContext } from '../command-line/command.ts';
import { ENGINE_FLAGS } from '../command-line/engine-flags.ts';
import { TRACK_FLAGS } from '../command-line/track-flags.ts';
import { PRODUCTION_FLAGS, takenBy } from '../planning/production-flags.ts';
import { RUN_FLAGS, WARM_START_FLAGS } from '../planning/run-flag-table.ts';

export const trainCommand = defineCommand({
  name: 'train',
  summary: 'start a training run or continue it, and show its progress',
  usage: '[AGENT] --base-model MODEL | --from-production RUN [flags]',
  details: [
    'AGENT is a file whose default export is defineAgent({ … }), or a folder with an agent.ts; by default the working',
    'folder. Flags that train of temporal.config.ts sets need not be passed. If a run of this name exists, it continues;',
    'if that run is complete, you see its result. Ctrl-C stops watching (exit code 130): run the same command to continue.',
  ],
  examples: [
    'temper train examples/tic-tac-toe/agent.ts --base-model pocket --steps 100',
    'temper train agent.ts --base-model Qwen/Qwen3-4B --steps 200 --group-size 8',
    'temper train agent.ts --base-model Qwen/Qwen3-4B --steps 220 --warm-start chats.jsonl --warm-start-steps 20',
    'temper train agent.ts --from-production demo --at-least 200 --run demo-2',
  ],
  arguments: { agent: AGENT_ARGUMENT },
  flags: {
    run: {
      heading: 'The run',
      isMain: true,
      kind: 'text',
      placeholder: 'NAME',
      description: 'name of the run',
      default: "the agent's name",
    },
    adapter: ADAPTER_FLAG,
    ...RUN_FLAGS,
    ...WARM_START_FLAGS,
    ...PRODUCTION_FLAGS,
    from: {
      heading: 'Recorded conversations',
      kind: 'text',
      placeholder: 'CHECKPOINT',
      description: 'with --from-production: checkpoint that the run starts from',
      default: 'the one that serves RUN',
    },
    ...TRACK_FLAGS,
    ...ENGINE_FLAGS,
  },
  projectFlags: async (environment, flags, words) =>
    (await import('../planning/project-flags.ts')).readProjectFlags(environment, takenBy(flags, words)),
  async run(context): Promise<number> {
    const { planTrain } = await import('./plan-train.ts');
    const { playRun } = await import('../session/play-run.ts');
    const plan = await planTrain(context);
    const { isPaid, tellEstimate } = await import('../forecast/tell-estimate.ts');
    if (isPaid(plan)) await tellEstimate(context, plan);
    return playRun(context, plan, context.flags);
  },
});

export type TrainContext = CommandContext<typeof trainCommand>;
