/** The command line in this process, with its output caught. */
import type { Arguments, Definition, Flags } from '../../operations/flags.ts';
import { GpuWorkerSettings } from '../../core/contract/engine.ts';
import { readdir } from 'node:fs/promises';
import { expect } from 'vitest';
import type { CommandContext } from '../../cli/command-line/command.ts';
import { parseCommandLine } from '../../cli/command-line/parse.ts';
import type { Output } from '../../cli/terminal/output.ts';
import { main } from '../../cli/main.ts';

export interface CliResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
}

export async function runCli(cwd: string, args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const lines = { stdout: [] as string[], stderr: [] as string[] };
  const output: Output = {
    isTerminal: false,
    columns: 100,
    rows: 30,
    stream: process.stdout,
    line: (text = '') => void lines.stdout.push(text),
    errorLine: (text) => void lines.stderr.push(text),
  };
  const { env = {}, signal = new AbortController().signal } = options;
  const exitCode = await main(args, { output, cwd, env, signal });
  return { exitCode, stdout: lines.stdout.join('\n'), stderr: lines.stderr.join('\n') };
}

/** The one line of a refused command, exit code 2, and nothing left behind. The folder stands there as PROJECT. */
export async function complaintIn(project: string, args: readonly string[], options?: CliOptions): Promise<string> {
  const before = await readdir(project, { recursive: true });
  const { exitCode, stdout, stderr } = await runCli(project, args, options);
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  // Its end is a remedy, the name that was meant, or the error of a person's own code.
  expect(stderr).toMatch(/^temper: .+([:;] .+|\?)$/);
  expect(await readdir(project, { recursive: true })).toEqual(before);
  return stderr.replaceAll(project, 'PROJECT');
}

/** The context of a command's work on a line, without its being run. */
export function contextOf<F extends Flags, A extends Arguments>(
  command: Definition<F, A>,
  project: string,
  words: readonly string[],
  env: NodeJS.ProcessEnv = {},
): CommandContext<Definition<F, A>> {
  const line = parseCommandLine(command, words);
  if (line.isHelp) throw new Error('help has no context');
  const output = { line: () => undefined, errorLine: () => undefined } as never;
  const { signal } = new AbortController();
  return { flags: line.flags, args: line.args, project, cwd: project, env, output, signal };
}

/** Settings on the command line of a GPU worker. */
export function settingsIn(args: readonly string[]): GpuWorkerSettings {
  return GpuWorkerSettings.parse(JSON.parse(args[args.indexOf('--settings') + 1] ?? ''));
}
