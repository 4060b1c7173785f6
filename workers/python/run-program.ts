/** The GPU worker's programs beside the worker itself, which end with an answer: `python -m temper_gpu.process.NAME`. */
import type { z } from 'zod';
import { FAILURES, TemperError, type FailureType } from '../../core/contract/failures.ts';
import { runCommand } from '../process/command.ts';
import { GPU_WORKER_FOLDER } from '../project/folders.ts';
import type { InstallOptions } from '../install/install.ts';
import { openPythonEnvironment } from '../install/python-environment.ts';
import { gpuWorkerEnvironment } from '../process/child-environment.ts';

export interface PythonProgram extends InstallOptions {
  readonly name: 'check_examples' | 'check_template' | 'export' | 'fetch_model' | 'measure' | 'plan' | 'recompute';
  /** Those that are null, undefined or false are left out. */
  readonly flags: ProgramFlags;
  readonly onLine?: (line: string) => void;
  /** True: a failure that it names is told by its last line, as any other. */
  readonly keepsFailure?: boolean;
}

/** A list's values follow its flag. */
type ProgramFlags = Readonly<
  Record<string, string | number | boolean | null | undefined | readonly (string | number)[]>
>;

/** The last object of JSON that it prints; null if it failed for a reason that it does not name. A named one is thrown. */
export async function runPythonProgram(program: PythonProgram): Promise<{ answer: unknown; lastLine: string }> {
  const { name, flags, env, signal, onLine } = program;
  const { python } = await openPythonEnvironment(program);
  const settings = { cwd: GPU_WORKER_FOLDER, env: gpuWorkerEnvironment(env), signal, onLine };
  const args = ['-m', `temper_gpu.process.${name}`, ...argumentsOf(flags)];
  const { code, output } = await runCommand(python, args, settings);
  signal?.throwIfAborted();
  const lines = output.split('\n').filter((line) => line !== '');
  const answer = lines.findLast((line) => line.startsWith('{'));
  const lastLine = lines.at(-1) ?? 'no answer';
  if (code === 0 && answer !== undefined) return { answer: JSON.parse(answer) as unknown, lastLine };
  if (program.keepsFailure !== true) throwKnown(lines);
  return { answer: null, lastLine };
}

function argumentsOf(flags: ProgramFlags): string[] {
  return Object.entries(flags).flatMap(([name, value]) => {
    if (value === null || value === undefined || value === false) return [];
    return [`--${name}`, ...(value === true ? [] : [value].flat().map(String))];
  });
}

/** The answer in its form. `failure`: what could not be done, where Python does not name its reason. */
export async function askPython<T>(form: z.ZodType<T>, failure: string, program: PythonProgram): Promise<T> {
  const { answer, lastLine } = await runPythonProgram(program);
  const parsed = form.safeParse(answer);
  if (parsed.success) return parsed.data;
  throw new TemperError('EngineFailed', `${failure}: ${lastLine}; run temper doctor`);
}

/** `BadConfig: …` is what Python says of a failure that it knows. */
function throwKnown(lines: readonly string[]): void {
  for (const line of lines) {
    const [, type = '', message = ''] = /^([A-Za-z]+): (.+)$/.exec(line) ?? [];
    if (Object.hasOwn(FAILURES, type)) throw new TemperError(type as FailureType, message);
  }
}
