import { defineCommand, JSON_FLAG, withRules } from '../command-line/command.ts';
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

export const doctorCommand = defineCommand({
  name: 'doctor',
  summary: 'check server, queues, engine, store and environments, and say what to fix',
  details: [
    'Exit code 1 if a check fails. Checks of things that are not running now are shown, but do not fail.',
    'With --model: what the model is, whether Temper can serve and train it, and what it needs of the memory.',
    'It reads no weights; of a model of the Hugging Face hub it downloads only the config and tokenizer. The other flags',
    'are those of a run: pass what you would pass to temper train. Flags that train of temporal.config.ts sets count, too.',
    'With --leases: what agents with resources hold, and since when. With AGENT, too, it ends what dead processes of this',
    'agent have left, by its own teardown. Exit code 1 if something is left. Needs no server.',
  ],
  examples: [
    'temper doctor',
    'temper doctor --model Qwen/Qwen3-0.6B',
    'temper doctor --model ./model --context 8192 --lora-rank 64',
    'temper doctor --leases ./agent.ts',
  ],
  arguments: { agent: { placeholder: 'AGENT', optional: true } },
  flags: {
    agent: {
      kind: 'texts',
      placeholder: 'NAME',
      description: "also check this agent's queue; repeatable",
      excludes: ['model'],
    },
    model: {
      kind: 'text',
      placeholder: 'MODEL',
      also: 'base-model',
      description: 'examine this base model instead: a name, a folder, OWNER/NAME[@REVISION] or s3://BUCKET/PREFIX',
    },
    context: {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'tokens of the longest conversation',
      default: "32768, or the model's context window",
      needs: ['model'],
    },
    'chat-template': { ...RUN_FLAGS['chat-template'], needs: ['model'] },
    ...withRules({ ...memoryFlags(), ...ENGINE_FLAGS }, { needs: ['model'] }),
    leases: {
      kind: 'boolean',
      description: 'look at the leases of resources instead, and end those of AGENT that leaked',
      excludes: ['model', 'agent'],
    },
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./doctor.ts')).doctor(context),
});
