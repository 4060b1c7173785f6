/** Commands of operations. */
import { randomUUID } from 'node:crypto';
import { badConfig } from '../../core/contract/failures.ts';
import { JSON_FLAG, type Arguments, type Flags } from '../../operations/flags.ts';
import { inputOf, listOperations, type Operation, type Place, type Table } from '../../operations/operation.ts';
import { parsedWords, wordsOf, type Words } from '../../operations/words.ts';
import { printJson } from '../terminal/output.ts';
import type { Command, CommandEnvironment } from './command.ts';
import { EXIT } from './errors.ts';
import { parseCommandLine } from './parse.ts';

/** Operations of two words, such as `checkpoints prune`, become actions of the command that their first word names. */
export function toCommands(operations: Readonly<Record<string, Operation>>): Command[] {
  const commands = actionsOf(operations);
  const nouns = commands.filter(({ name }) => !name.includes(' '));
  return nouns.map((noun) => {
    const actions = commands.filter(({ name }) => name.startsWith(`${noun.name} `));
    return actions.length === 0 ? noun : { ...noun, actions };
  });
}

/** Commands of operations whose names have two words. */
export function actionsOf(operations: Readonly<Record<string, Operation>>): Command[] {
  return listOperations(operations).map(toCommand);
}

export function toCommand<const F extends Flags, const A extends Arguments, Output>(
  operation: Operation<F, A, Output>,
): Command<F & { json: typeof JSON_FLAG }, A> {
  return {
    ...operation,
    flags: { ...operation.flags, json: JSON_FLAG },
    async run({ args, flags, ...environment }): Promise<number> {
      const { output } = environment;
      const input = inputOf(operation, args, flags);
      const answer = await operation.run(input, placeOf(environment));
      if (flags['json'] === true) printJson(output, answer);
      else for (const line of await operation.lines(answer, input)) output.line(await textOf(line));
      const problems = operation.problems?.(answer) ?? [];
      for (const problem of problems) output.errorLine(`temper: ${problem}`);
      return problems.length === 0 ? EXIT.ok : EXIT.failed;
    },
  };
}

/** Input of an operation from an object of JSON, by the rules of its command line. */
export function readInput(operation: Operation, given: Readonly<Record<string, unknown>>): ReadInput {
  const words = wordsOf(operation, given);
  const line = parseCommandLine(operation, parsedWords(words));
  // No word is `--help`.
  if (line.isHelp) throw badConfig(`${operation.name} has no help here; see temper ${operation.name} --help`);
  return { input: inputOf(operation, line.args, line.flags), words };
}

interface ReadInput {
  readonly input: Parameters<Operation['run']>[0];
  readonly words: Words;
}

export async function textOf(line: string | Table): Promise<string> {
  if (typeof line === 'string') return line;
  const { createTable } = await import('../terminal/table.ts');
  return createTable(line.head, line.rows);
}

export function placeOf({ project, env, cwd, signal, output }: CommandEnvironment): Place {
  let store: ReturnType<Place['store']> | null = null;
  const open: Place['store'] = async () => {
    const { openProjectStore } = await import('../../workers/config/project-store.ts');
    return openProjectStore(project, env);
  };
  return {
    project,
    env,
    cwd,
    signal,
    gone: signal,
    requestId: randomUUID(),
    store: () => (store ??= open()),
    // The next line begins where it began.
    ...(output.isTerminal && { showProgress: (line) => void output.stream.write(`\r${line}\r`) }),
  };
}
