import { ADAPTER_FLAG, CHECKPOINT_HELP, defineCommand, type CommandContext } from '../command-line/command.ts';
import { ENGINE_FLAGS } from '../command-line/engine-flags.ts';
import { TRACK_FLAGS } from '../command-line/track-flags.ts';
import { EXAMPLE_FLAGS, SUPERVISED_RUN_FLAGS } from '../planning/run-flag-table.ts';

export const sftCommand = defineCommand({
  name: 'sft',
  summary: 'train on a file of chats (supervised), and show the progress',
  details: [
    'FILE has a chat in each line, as JSON: {"messages": […], "tools": […]}. A tenth of them is held out, and its loss is',
    'reported. Steps are committed like those of temper train: pause, resume, rollback, verify, export and serve work',
    'alike. If a run of this name exists, it continues. Ctrl-C stops watching (exit code 130).',
    'With --from, the run starts with the adapter and the optimizer state of CHECKPOINT, and has its base model, LoRA',
    'settings, chat template and optimizer.',
    ...CHECKPOINT_HELP,
  ],
  examples: [
    'temper sft chats.jsonl --base-model Qwen/Qwen3-4B --epochs 2 --learning-rate 1e-4',
    'temper sft chats.jsonl --base-model pocket --run greetings --steps 50 --turns last',
    'temper sft best.jsonl --from demo@best --run demo-chats --steps 20',
  ],
  arguments: { file: { placeholder: 'FILE' } },
  flags: {
    run: { kind: 'text', placeholder: 'NAME', description: 'name of the run', default: "the file's name" },
    from: {
      kind: 'text',
      placeholder: 'CHECKPOINT',
      description: 'checkpoint of another run to start from, without copying it',
    },
    adapter: ADAPTER_FLAG,
    ...SUPERVISED_RUN_FLAGS,
    steps: {
      kind: 'integer',
      placeholder: 'N',
      minimum: 1,
      description: 'optimizer steps',
      default: 'as --epochs says',
    },
    epochs: {
      kind: 'number',
      placeholder: 'X',
      description: 'how often the examples are trained, without --steps',
      default: '1',
    },
    ...EXAMPLE_FLAGS,
    ...TRACK_FLAGS,
    ...ENGINE_FLAGS,
  },
  // The number of steps of an agent's runs says nothing about a file of chats.
  projectFlags: async (environment, { steps: _steps, ...flags }) =>
    (await import('../planning/project-flags.ts')).readProjectFlags(environment, flags),
  async run(context): Promise<number> {
    const { planSft } = await import('./plan-sft.ts');
    const { playRun } = await import('../session/play-run.ts');
    return playRun(context, await planSft(context), context.flags);
  },
});

export type SftContext = CommandContext<typeof sftCommand>;
