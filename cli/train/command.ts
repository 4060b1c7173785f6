import { JSON_FLAG } from '../../operations/flags.ts';
import { ADAPTER_FLAG, defineCommand, withRules, type CommandContext } from '../command-line/command.ts';
import { ENGINE_FLAGS } from '../command-line/engine-flags.ts';
import { TRACK_FLAGS } from '../command-line/track-flags.ts';
import { EXAMPLE_FLAGS, RUN_FLAGS, WARM_START_FLAGS } from '../planning/run-flag-table.ts';
import { PRODUCTION_FLAGS, readRunSource, takesFromProject } from '../planning/run-source.ts';

const heading = 'Costs';

export const trainCommand = defineCommand({
  name: 'train',
  group: 'Start',
  summary: 'start a training run or continue it, and show its progress',
  usage: '[SOURCE] --base-model MODEL | --from CHECKPOINT | --from-production RUN [flags]',
  details: [
    'SOURCE is a file whose default export is defineAgent({ … }), or a folder with an agent.ts (by default the working',
    'folder); or a file of chats (.jsonl): {"messages": […], "tools": […]} in each line, a tenth of which is held out.',
    'With --from, the run continues the weights and the optimizer state of CHECKPOINT and counts its own steps from 1. With',
    'an agent, it has the configuration of that run, changed by the flags you pass. Base model and LoRA settings stay.',
    'Flags that train of temporal.config.ts sets need not be passed. If a run of this name exists, it continues;',
    'if that run is complete, you see its result. Ctrl-C stops watching (exit code 130): run the same command to continue.',
  ],
  examples: [
    'temper train agent.ts --base-model Qwen/Qwen3-4B --steps 200 --group-size 8',
    'temper train agent.ts --from demo@40 --run demo-slow --learning-rate 1e-3',
    'temper train chats.jsonl --base-model Qwen/Qwen3-4B --epochs 2 --learning-rate 1e-4',
    'temper train agent.ts --from-production demo --at-least 200 --run demo-2',
  ],
  arguments: { source: { placeholder: 'SOURCE', optional: true } },
  flags: {
    run: {
      heading: 'The run',
      isMain: true,
      kind: 'text',
      placeholder: 'NAME',
      description: 'name of the run',
      default: "the agent's or the file's",
    },
    from: {
      heading: 'The run',
      isMain: true,
      kind: 'text',
      placeholder: 'CHECKPOINT',
      description: 'checkpoint of a run to start from',
      excludes: ['adapter', 'warm-start'],
    },
    adapter: ADAPTER_FLAG,
    ...RUN_FLAGS,
    ...WARM_START_FLAGS,
    ...EXAMPLE_FLAGS,
    ...PRODUCTION_FLAGS,
    epochs: { ...PRODUCTION_FLAGS.epochs, excludes: ['steps'] },
    estimate: {
      heading,
      isMain: true,
      kind: 'boolean',
      description: 'only estimate tokens, time and cost',
      excludes: ['from-production'],
    },
    ...withRules(
      {
        probe: {
          heading,
          kind: 'boolean',
          description: 'play four steps and measure them; they are kept as the run probe-HASH, which is used again',
        },
        json: { ...JSON_FLAG, heading },
      },
      { needs: ['estimate'] },
    ),
    like: {
      heading,
      kind: 'text',
      placeholder: 'RUN',
      description: 'run to measure',
      default: 'the most similar one',
      needs: ['estimate'],
      excludes: ['probe'],
    },
    ...TRACK_FLAGS,
    ...ENGINE_FLAGS,
  },
  async projectFlags(context) {
    const { readProjectFlags } = await import('../planning/project-flags.ts');
    const source = readRunSource({ source: context.args.source, flags: context.flags });
    return readProjectFlags(context, (name) => takesFromProject(source, context.flags.from, name));
  },
  run: async (context): Promise<number> => (await import('./train.ts')).train(context),
});

export type TrainContext = CommandContext<typeof trainCommand>;
