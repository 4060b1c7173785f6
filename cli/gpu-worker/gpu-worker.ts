import { loadConfig } from '../../workers/config.ts';
import { chosenEngine } from '../../workers/engine-choices.ts';
import { runGpuWorker } from '../../workers/local-stack/gpu-worker.ts';
import { checkQuantization } from '../../workers/quantization.ts';
import type { CommandContext } from '../command-line/command.ts';
import { WorkFailed, EXIT } from '../command-line/errors.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { gpuWorkerCommand } from './command.ts';

type Context = CommandContext<typeof gpuWorkerCommand>;

export async function serveAndTrain({ flags, project, env, output, signal }: Context): Promise<number> {
  const onEvent = createEventPrinter((line) => output.line(line));
  const { engine } = await loadConfig(project, env);
  const [shardBaseModel, loadIn4bit] = [flags['shard-base-model'], flags['load-in-4bit']];
  checkQuantization(chosenEngine(engine, { shardBaseModel, loadIn4bit }));
  const code = await runGpuWorker({ project, env, signal, onEvent, flags: pythonFlags(flags) });
  // The worker itself has said what is wrong with its host, its port or its store.
  if (code === EXIT.ok || code === EXIT.usage) return code;
  if (signal.aborted) return EXIT.ok;
  throw new WorkFailed(`the GPU worker ended (${code ?? 'killed'}); see its last lines, then start it again`);
}

function pythonFlags(flags: Context['flags']): string[] {
  const { host, port, devices, threads, 'allow-host': allowed } = flags;
  const single = Object.entries({ host, port, devices, threads }).flatMap(([name, value]) =>
    value === null ? [] : [`--${name}=${value}`],
  );
  const switches = (['shard-base-model', 'load-in-4bit'] as const).filter((name) => flags[name]);
  return [...single, ...switches.map((name) => `--${name}`), ...allowed.map((name) => `--allow-host=${name}`)];
}
