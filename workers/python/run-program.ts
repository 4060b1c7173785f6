/** The GPU worker's programs beside the worker itself, which end with an answer: `python -m temper_gpu.process NAME`. */
import type { z } from 'zod';
import type { ProgramInputs } from '../../core/contract/programs.ts';
import { FAILURES, TemperError, type FailureType } from '../../core/contract/failures.ts';
import { runCommand } from '../process/command.ts';
import { GPU_WORKER_FOLDER } from '../project/folders.ts';
import type { InstallOptions } from '../install/install.ts';
import { openPythonEnvironment } from '../install/python-environment.ts';
import { gpuWorkerEnvironment } from '../process/child-environment.ts';

interface PythonProgram<N extends keyof ProgramInputs> extends InstallOptions {
  readonly name: N;
  readonly input: ProgramInputs[N];
  readonly onLine?: (line: string) => void;
  /** True: a failure that it names is told by its last line, as any other. */
  readonly keepsFailure?: boolean;
}

/** The last object of JSON that it prints; null if it failed for a reason that it does not name. A named one is thrown. */
export async function runPythonProgram<N extends keyof ProgramInputs>(
  program: PythonProgram<N>,
): Promise<{ answer: unknown; lastLine: string }> {
  const { name, env, signal, onLine } = program;
  const { python } = await openPythonEnvironment(program);
  const input = JSON.stringify(program.input);
  const settings = { cwd: GPU_WORKER_FOLDER, env: gpuWorkerEnvironment(env), signal, onLine, input };
  const { code, output } = await runCommand(python, ['-m', 'temper_gpu.process', name], settings);
  signal?.throwIfAborted();
  const lines = output.split('\n').filter((line) => line !== '');
  const answer = lines.findLast((line) => line.startsWith('{'));
  const lastLine = lines.at(-1) ?? 'no answer';
  if (code === 0 && answer !== undefined) return { answer: JSON.parse(answer) as unknown, lastLine };
  if (program.keepsFailure !== true) throwKnown(lines);
  return { answer: null, lastLine };
}

/** The answer in its form. `failure`: what could not be done, and `remedy`, where Python does not name its reason. */
export async function askPython<T, N extends keyof ProgramInputs>(
  form: z.ZodType<T>,
  failure: string,
  program: PythonProgram<N>,
  remedy = 'run temper doctor',
): Promise<T> {
  const { answer, lastLine } = await runPythonProgram(program);
  const parsed = form.safeParse(answer);
  if (parsed.success) return parsed.data;
  throw new TemperError('EngineFailed', `${failure}: ${lastLine}; ${remedy}`);
}

/** `BadConfig: …` is what Python says of a failure that it knows. */
function throwKnown(lines: readonly string[]): void {
  for (const line of lines) {
    const [, type = '', message = ''] = /^([A-Za-z]+): (.+)$/.exec(line) ?? [];
    if (Object.hasOwn(FAILURES, type)) throw new TemperError(type as FailureType, message);
  }
}
