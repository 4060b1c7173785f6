/** The GPU worker's programs beside the worker itself, which end with an answer: `python -m temper_gpu.process.NAME`. */
import { FAILURES, TemperError, type FailureType } from '../../core/failures.ts';
import { runCommand } from '../process/command.ts';
import { GPU_WORKER_FOLDER } from '../project/folders.ts';
import type { InstallOptions } from '../install/install.ts';
import { openPythonEnvironment } from '../install/python-environment.ts';
import { gpuWorkerEnvironment } from '../process/child-environment.ts';

export interface PythonProgram extends InstallOptions {
  readonly name: 'check_examples' | 'check_template' | 'export' | 'fetch_model' | 'plan';
  readonly args: readonly string[];
  readonly onLine?: (line: string) => void;
}

/** The last object of JSON that it prints; null where it failed for a reason that it does not name. A named one is thrown. */
export async function runPythonProgram(program: PythonProgram): Promise<{ answer: unknown; lastLine: string }> {
  const { name, args, env, signal, onLine } = program;
  const { python } = await openPythonEnvironment(program);
  const { code, output } = await runCommand(python, ['-m', `temper_gpu.process.${name}`, ...args], {
    cwd: GPU_WORKER_FOLDER,
    env: gpuWorkerEnvironment(env),
    ...(signal === undefined ? {} : { signal }),
    ...(onLine === undefined ? {} : { onLine }),
  });
  signal?.throwIfAborted();
  const lines = output.split('\n').filter((line) => line !== '');
  const answer = lines.findLast((line) => line.startsWith('{'));
  const lastLine = lines.at(-1) ?? 'no answer';
  if (code === 0 && answer !== undefined) return { answer: JSON.parse(answer) as unknown, lastLine };
  throwKnown(lines);
  return { answer: null, lastLine };
}

/** `BadConfig: …` is what Python says of a failure that it knows. */
function throwKnown(lines: readonly string[]): void {
  for (const line of lines) {
    const [, type = '', message = ''] = /^([A-Za-z]+): (.+)$/.exec(line) ?? [];
    if (Object.hasOwn(FAILURES, type)) throw new TemperError(type as FailureType, message);
  }
}
