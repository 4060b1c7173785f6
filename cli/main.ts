/** The command line: finds the command, parses its flags, runs it, and turns every outcome into an exit code. */
import { setMaxListeners } from 'node:events';
import { badConfig, type TemperError } from '../core/contract/failures.ts';
import { closestName } from '../core/names/closest-name.ts';
import { COMMAND_TABLE } from './command-table.ts';
import { loadCommand } from './commands.ts';
import { EXIT, describeError } from './command-line/errors.ts';
import type { Command, CommandEnvironment } from './command-line/command.ts';
import { glossaryLine, helpOf, overview } from './command-line/help.ts';
import { parseCommandLine } from './command-line/parse.ts';
import { printableOutput, processOutput } from './terminal/output.ts';
import { takeDoorKeys } from '../core/names/door-keys.ts';
import { findProject } from '../workers/project/folders.ts';
import { version } from '../workers/version.ts';

type ProcessEnvironment = Omit<CommandEnvironment, 'project'>;

export async function main(args: readonly string[], given: ProcessEnvironment = processEnvironment()): Promise<number> {
  const environment = { ...given, output: printableOutput(given.output) };
  try {
    return await dispatch(args, environment);
  } catch (error) {
    // Errors after an interrupt are consequences of it.
    if (environment.signal.aborted) return EXIT.interrupted;
    const { text, exitCode } = describeError(error);
    environment.output.errorLine(text);
    return exitCode;
  }
}

async function dispatch(args: readonly string[], { output, ...environment }: ProcessEnvironment): Promise<number> {
  const [name, ...rest] = args;
  const isHelp = name === 'help' || name === '--help' || name === '-h';
  // `temper help train` and `temper help schedule create` are that command's --help.
  const asked = rest.filter((word) => !word.startsWith('-'));
  if (isHelp && asked.length > 0)
    return dispatch([...asked.slice(0, 2), '--help', ...asked.slice(2)], { output, ...environment });
  if (name === undefined || isHelp) {
    output.line(`${overview(COMMAND_TABLE, version())}\n${glossaryLine(environment.cwd)}`);
    return EXIT.ok;
  }
  if (name === '--version') {
    output.line(version());
    return EXIT.ok;
  }
  const { command, args: own } = await findCommand(name, rest);
  return runCommand(command, own, { ...environment, output, project: findProject(environment.cwd) });
}

async function runCommand(
  command: Command,
  words: readonly string[],
  environment: CommandEnvironment,
): Promise<number> {
  const line = parseCommandLine(command, words);
  if (line.isHelp) {
    environment.output.line(`${helpOf(command, line.isWhole)}\n\n${glossaryLine(environment.cwd)}`);
    return EXIT.ok;
  }
  const context = { ...environment, flags: line.flags, args: line.args };
  const projectFlags = (await command.projectFlags?.(context)) ?? [];
  if (projectFlags.length === 0) return command.run(context);
  const whole = parseCommandLine(command, [...projectFlags, ...words]);
  return command.run(whole.isHelp ? context : { ...context, flags: whole.flags });
}

/** Finds the command, or the action that the next word names. */
export async function findCommand(
  name: string,
  args: readonly string[],
): Promise<{ command: Command; args: readonly string[] }> {
  const command = await loadCommand(name);
  if (command === null) throw unknownCommand(name, COMMAND_TABLE);
  const [action, ...rest] = args;
  const { actions } = command;
  if (actions === undefined || action === undefined || action.startsWith('-')) return { command, args };
  const found = actions.find((candidate) => candidate.name === `${name} ${action}`);
  if (found !== undefined) return { command: found, args: rest };
  // The word may be an argument of the command itself.
  if (Object.keys(command.arguments).length > 0) return { command, args };
  throw unknownCommand(`${name} ${action}`, actions);
}

function unknownCommand(name: string, known: readonly Pick<Command, 'name'>[]): TemperError {
  const guess = closestName(
    name,
    known.map((command) => command.name),
  );
  return badConfig(
    `unknown command ${name}; ${guess === null ? 'see temper --help' : `did you mean temper ${guess}?`}`,
  );
}

/** npm forwards the Ctrl-C that the terminal has sent to every process already; on a busy machine that takes a while. */
const SAME_SIGNAL_MS = 2000;

/** The first Ctrl-C asks the command to shut down, the second one ends it at once (its child processes end with it). */
function processEnvironment(): ProcessEnvironment {
  const controller = new AbortController();
  // Each attempt that is played listens to it.
  setMaxListeners(0, controller.signal);
  let abortedAt = 0;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!controller.signal.aborted) abortedAt = performance.now();
      else if (performance.now() - abortedAt > SAME_SIGNAL_MS) process.exit(EXIT.interrupted);
      controller.abort(signal);
    });
  }
  // Also a promise that nobody waits for.
  process.on('uncaughtException', (error) => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted);
    const { text, exitCode } = describeError(error, 'nothing handles this error, which ends the command');
    printableOutput(processOutput()).errorLine(text);
    process.exit(exitCode);
  });
  // Agents run in this process, too.
  const env = takeDoorKeys(process.env);
  return { output: processOutput(), cwd: process.cwd(), env, ownsProcess: true, signal: controller.signal };
}
