import type { Command, Flags } from '../command-line/command.ts';
import { stringFlag, stringFlags } from '../command-line/command.ts';
import { WorkFailed, EXIT } from '../command-line/errors.ts';

export const gpuWorker: Command = {
  name: 'gpu-worker',
  summary: 'run a GPU worker on its own machine: it serves the model and trains it',
  usage: 'gpu-worker [--host ADDRESS] [--port N] [--allow-host NAME]… [--threads N]',
  details: [
    'Set TEMPER_ENGINE_KEY to the key that clients must send. Set TEMPORAL_* or temporal.toml to reach Temporal, and',
    'temporal.config.ts for store, models and queue. It listens on loopback by default and does not speak TLS: put a',
    'reverse proxy in front of it. Runs until Ctrl-C.',
  ],
  examples: [
    'temper gpu-worker',
    'temper gpu-worker --host 10.0.0.5',
    'temper gpu-worker --host 0.0.0.0 --allow-host gpu-1.internal',
  ],
  positionals: [],
  options: {
    host: { type: 'string', placeholder: 'ADDRESS', description: 'address to listen on [127.0.0.1]' },
    port: { type: 'string', placeholder: 'N', description: 'port to listen on [8017]' },
    'allow-host': {
      type: 'string',
      multiple: true,
      placeholder: 'NAME',
      description: 'host name that clients may use, besides --host and localhost; repeatable',
    },
    threads: {
      type: 'string',
      placeholder: 'N',
      description: 'CPU threads; the exact results depend on it [engine.threads of temporal.config.ts, or 2]',
    },
  },
  async run({ flags, project, env, output, signal }) {
    const { runGpuWorker } = await import('../../workers/local-stack/gpu-worker.ts');
    const { createEventPrinter } = await import('../terminal/stack-events.ts');
    const onEvent = createEventPrinter((line) => output.line(line));
    const code = await runGpuWorker({ project, env, signal, onEvent, flags: pythonFlags(flags) });
    // The worker itself has said what is wrong with its flags, its port or its store.
    if (code === EXIT.ok || code === EXIT.usage) return code;
    if (signal.aborted) return EXIT.ok;
    throw new WorkFailed(`the GPU worker ended (${code ?? 'killed'}); see its last lines, then start it again`);
  },
};

function pythonFlags(flags: Flags): string[] {
  const single = ['host', 'port', 'threads'].flatMap((name) => {
    const value = stringFlag(flags, name);
    return value === null ? [] : [`--${name}=${value}`];
  });
  return [...single, ...stringFlags(flags, 'allow-host').map((name) => `--allow-host=${name}`)];
}
