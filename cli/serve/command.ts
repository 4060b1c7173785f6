import { CHECKPOINT_ARGUMENT, CHECKPOINT_HELP, JSON_FLAG } from '../../operations/flags.ts';
import { SERVE_KEY_VARIABLE } from '../../core/names/door-keys.ts';
import { defineCommand, type CommandContext } from '../command-line/command.ts';
import { ENGINE_FLAGS } from '../command-line/engine-flags.ts';
import { placeFlags } from '../command-line/listening.ts';

export const DEFAULT_SERVE_PORT = 8018;

export const serveCommand = defineCommand({
  name: 'serve',
  group: 'Use what was trained',
  summary: 'serve a trained model over HTTP, as OpenAI and Anthropic do; needs no Temporal server',
  details: [
    'Starts an engine on this machine and answers chat completions, responses and messages, streamed or not. Requests',
    "that set no temperature or token limit get the run's. Clients send a key: the one in TEMPER_SERVE_KEY, or else a new",
    'one, which is shown on the terminal. Listens on loopback by default and does not speak TLS. Runs until Ctrl-C.',
    ...CHECKPOINT_HELP,
  ],
  examples: ['temper serve demo@best', 'temper serve demo --host 0.0.0.0 --allow-host models.internal'],
  arguments: { checkpoint: CHECKPOINT_ARGUMENT },
  flags: {
    ...placeFlags({ keyVariable: SERVE_KEY_VARIABLE, defaultPort: DEFAULT_SERVE_PORT }),
    'model-name': {
      kind: 'texts',
      placeholder: 'NAME',
      description: 'name that clients may send as model, besides RUN and RUN@STEP; repeatable',
    },
    device: {
      ...ENGINE_FLAGS.device,
      description: 'where the engine computes',
      default: 'engine.device of temporal.config.ts, or auto: a GPU if there is one',
    },
    dtype: { ...ENGINE_FLAGS.dtype, description: 'type of the base model', default: 'that of the checkpoint' },
    'load-in-4bit': {
      ...ENGINE_FLAGS['load-in-4bit'],
      description: 'load the base model in 4 bits per weight (NF4)',
      default: 'as the checkpoint was trained',
    },
    record: {
      kind: 'boolean',
      description: 'keep served conversations with token ids, to train on them; nothing is kept without',
    },
    'record-share': {
      kind: 'number',
      minimum: 0,
      maximum: 1,
      placeholder: 'N',
      description: 'this share of the conversations, chosen at random',
      default: '1',
      needs: ['record'],
    },
    'record-days': {
      kind: 'integer',
      minimum: 1,
      placeholder: 'N',
      description: 'remove recordings and feedback that are older',
      default: 'none are removed',
      needs: ['record'],
    },
    redact: {
      kind: 'text',
      placeholder: 'FILE',
      description: 'module whose default export changes a conversation before it is kept, or returns null',
      needs: ['record'],
    },
    json: { ...JSON_FLAG, description: 'print one JSON object when it is ready; needs TEMPER_SERVE_KEY' },
  },
  run: async (context): Promise<number> => (await import('./serve.ts')).serve(context),
});

export type ServeContext = CommandContext<typeof serveCommand>;
