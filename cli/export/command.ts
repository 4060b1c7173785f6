import { CHECKPOINT_ARGUMENT, CHECKPOINT_HELP, JSON_FLAG } from '../../operations/flags.ts';
import { defineCommand, type CommandContext } from '../command-line/command.ts';

export const exportCommand = defineCommand({
  name: 'export',
  group: 'Use what was trained',
  summary: 'write a trained model to a folder: its adapter, merged weights, GGUF or MLX',
  details: [
    'The folder loads in transformers, PEFT and vLLM without Temper; its README.md says how, and what the model is.',
    'peft: the LoRA adapter as it was committed, byte for byte. merged: a whole model, with tokenizer and chat template;',
    'with gguf the only format of a run with --full-fine-tuning. gguf: the whole model as one file for llama.cpp and',
    'Ollama; of the families of Llama, Mistral, Qwen 2 and Qwen 3. mlx: the adapter for mlx-lm.',
    'Reads the store and needs no server. An existing folder is never overwritten.',
    ...CHECKPOINT_HELP,
  ],
  examples: [
    'temper export demo@best --to ./demo-adapter',
    'temper export demo --to ./demo-model --format merged --dtype bfloat16',
    'temper export demo --to ./demo-gguf --format gguf --quantize q8_0',
  ],
  arguments: { checkpoint: CHECKPOINT_ARGUMENT },
  flags: {
    to: { kind: 'text', placeholder: 'FOLDER', description: 'folder to write', required: 'pass a new folder' },
    format: {
      kind: 'choice',
      choices: ['peft', 'merged', 'gguf', 'mlx'],
      placeholder: 'NAME',
      description: 'peft, merged, gguf or mlx',
      default: 'peft; merged after --full-fine-tuning',
    },
    dtype: {
      kind: 'choice',
      choices: ['float32', 'bfloat16', 'float16'],
      placeholder: 'NAME',
      description: 'type of merged weights: float32, bfloat16 or float16',
      default: 'float32',
    },
    quantize: {
      kind: 'choice',
      choices: ['q8_0'],
      placeholder: 'NAME',
      description: 'weights in 8 bits: q8_0',
      needs: ['format gguf'],
      excludes: ['dtype'],
    },
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./export.ts')).exportPolicy(context),
});

export type ExportContext = CommandContext<typeof exportCommand>;
