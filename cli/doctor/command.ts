import { JSON_FLAG } from '../../operations/flags.ts';
import { defineCommand } from '../command-line/command.ts';
import { ENGINE_FLAGS } from '../command-line/engine-flags.ts';
import { RUN_FLAGS } from '../planning/run-flag-table.ts';

/** Flags of a run that change its memory. */
export const MEMORY_FLAGS = [
  'full-fine-tuning',
  'lora-rank',
  'lora-target-modules',
  'lora-layers',
  'lora-dora',
  'lora-dropout',
  'optimizer',
  'entropy-coefficient',
  'micro-batch-tokens',
] as const;

function memoryFlags(): Pick<typeof RUN_FLAGS, (typeof MEMORY_FLAGS)[number]> {
  return Object.fromEntries(MEMORY_FLAGS.map((name) => [name, RUN_FLAGS[name]])) as ReturnType<typeof memoryFlags>;
}

export const doctorModelCommand = defineCommand({
  name: 'doctor model',
  summary: 'say whether Temper can serve and train a base model, and what it needs of the memory',
  details: [
    'MODEL is a name, a folder, OWNER/NAME[@REVISION] or s3://BUCKET/PREFIX. Reads no weights; of a model of the Hugging Face',
    'hub it downloads only the config and tokenizer. The flags are those of a run: pass what you would pass to temper train.',
    'Flags that train of temporal.config.ts sets count, too. Exit code 1 if the model cannot be used or does not fit.',
  ],
  examples: ['temper doctor model Qwen/Qwen3-0.6B', 'temper doctor model ./model --context 8192 --lora-rank 64'],
  arguments: { model: { placeholder: 'MODEL' } },
  flags: {
    context: {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'tokens of the longest conversation',
      default: "32768, or the model's context window",
    },
    'chat-template': RUN_FLAGS['chat-template'],
    ...memoryFlags(),
    ...ENGINE_FLAGS,
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./doctor-model.ts')).doctorModel(context),
});

export const doctorLeasesCommand = defineCommand({
  name: 'doctor leases',
  summary: 'show what agents with resources hold, and end what dead processes of AGENT have left',
  details: [
    "With AGENT, a file, it ends leaked leases by the agent's own teardown. Needs no server. Exit code 1 if something is left.",
  ],
  examples: ['temper doctor leases ./agent.ts'],
  arguments: { agent: { placeholder: 'AGENT', optional: true } },
  flags: { json: JSON_FLAG },
  run: async (context): Promise<number> => (await import('./doctor-leases.ts')).doctorLeases(context),
});

export const doctorCommand = defineCommand({
  name: 'doctor',
  group: 'Operate',
  summary: 'check server, queues, engine, store and environments, and say what to fix',
  details: ['Exit code 1 if a check fails. Checks of things that are not running now are shown, but do not fail.'],
  examples: ['temper doctor', 'temper doctor model Qwen/Qwen3-0.6B'],
  arguments: {},
  flags: {
    agent: { kind: 'texts', placeholder: 'NAME', description: "also check this agent's queue; repeatable" },
    json: JSON_FLAG,
  },
  actions: [doctorModelCommand, doctorLeasesCommand],
  run: async (context): Promise<number> => (await import('./doctor.ts')).doctor(context),
});
