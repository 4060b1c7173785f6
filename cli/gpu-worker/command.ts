import { MOST_THREADS } from '../../core/contract/wire-constants.ts';
import { defineCommand } from '../command-line/command.ts';
import { ENGINE_FLAGS } from '../command-line/engine-flags.ts';
import { ALLOW_HOST_FLAG } from '../command-line/listening.ts';

export const gpuWorkerCommand = defineCommand({
  name: 'gpu-worker',
  group: 'Operate',
  summary: 'run a GPU worker on its own machine: it serves the model and trains it',
  details: [
    'Set TEMPER_ENGINE_KEY to the key that clients must send. Set TEMPORAL_* or temporal.toml to reach Temporal, and',
    'temporal.config.ts for store, models and queue. It listens on loopback by default and does not speak TLS: put a',
    'reverse proxy in front of it. Runs until Ctrl-C.',
  ],
  examples: [
    'temper gpu-worker',
    'temper gpu-worker --host 10.0.0.5',
    'temper gpu-worker --host 0.0.0.0 --allow-host gpu-1.internal',
    'temper gpu-worker --device cuda:1 --no-train',
  ],
  arguments: {},
  flags: {
    host: { kind: 'text', placeholder: 'ADDRESS', description: 'address to listen on', default: '127.0.0.1' },
    port: { kind: 'port', minimum: 0, placeholder: 'N', description: 'port to listen on', default: '8017' },
    'allow-host': ALLOW_HOST_FLAG,
    'no-train': {
      kind: 'boolean',
      description: 'only sample: another GPU worker must train. It needs no Temporal server',
      excludes: ['devices', 'shard-base-model'],
    },
    device: {
      ...ENGINE_FLAGS.device,
      description: 'where it computes: auto, cpu, cuda or cuda:N',
      default: 'engine.device of temporal.config.ts, or auto',
    },
    dtype: {
      ...ENGINE_FLAGS.dtype,
      description: 'type of base models: auto, float32 or bfloat16',
      default: 'engine.dtype of temporal.config.ts, or auto',
    },
    devices: {
      ...ENGINE_FLAGS.devices,
      description: 'how many devices train: GPUs, or processes on the CPU',
      default: 'engine.devices of temporal.config.ts, or 1',
    },
    'shard-base-model': {
      ...ENGINE_FLAGS['shard-base-model'],
      description: 'each of several devices holds a part of the base model',
      default: 'engine.shardBaseModel of temporal.config.ts',
    },
    'load-in-4bit': {
      ...ENGINE_FLAGS['load-in-4bit'],
      description: 'load the linear layers of base models in 4 bits per weight (NF4)',
      default: 'engine.loadIn4bit of temporal.config.ts',
    },
    threads: {
      kind: 'integer',
      minimum: 1,
      maximum: MOST_THREADS,
      placeholder: 'N',
      description: 'CPU threads; the exact results depend on it',
      default: 'engine.threads of temporal.config.ts, or 2',
    },
  },
  run: async (context): Promise<number> => (await import('./gpu-worker.ts')).serveAndTrain(context),
});
