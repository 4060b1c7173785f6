/** From a command's data to one that runs: its line is parsed, its work is loaded, its help is told. */
import type { Arguments, CommandContext, Definition, Flags, Surroundings } from './command.ts';
import { EXIT, UsageError } from './errors.ts';
import { commandHelp } from './help.ts';
import { parseCommandLine } from './parse.ts';

export interface CommandData<F extends Flags, A extends Arguments> extends Definition<F, A> {
  /** Imports the work; until then nothing of it is loaded. Its exit code is the command's. */
  readonly load: () => Promise<(context: CommandContext<Definition<F, A>>) => Promise<number>>;
  /** Words that stand before those of the command line, which win over them. */
  readonly loadProjectFlags?: (surroundings: Surroundings) => Promise<readonly string[]>;
  /** What help says of flags where that takes more than a definition may import. */
  readonly loadDescriptions?: (flags: Flags) => Promise<Readonly<Record<string, string>>>;
}

export interface Command extends Definition {
  /** Commands of two words, named so: `schedule list`. */
  readonly actions?: readonly Command[];
  help(): Promise<string>;
  run(words: readonly string[], surroundings: Surroundings): Promise<number>;
}

export function createCommand<F extends Flags, A extends Arguments>(data: CommandData<F, A>): Command {
  const { load, loadProjectFlags, loadDescriptions, ...definition } = data;
  const help = async () => commandHelp(definition, await loadDescriptions?.(definition.flags));
  return {
    ...definition,
    help,
    async run(words, surroundings) {
      const asksHelp = words.includes('--help') || words.includes('-h');
      const projectFlags = asksHelp ? [] : await loadProjectFlags?.(surroundings);
      const line = parseCommandLine(definition, [...(projectFlags ?? []), ...words]);
      if (line.isHelp) return tellHelp(surroundings, await help());
      const work = await load();
      return work({ ...surroundings, flags: line.flags, args: line.args });
    },
  };
}

/** A command that only stands before its actions. */
export function createGroup(data: Definition, actions: readonly Command[]): Command {
  const help = () => Promise.resolve(commandHelp({ ...data, actions }));
  return {
    ...data,
    actions,
    help,
    async run(words, surroundings) {
      if (parseCommandLine(data, words).isHelp) return tellHelp(surroundings, await help());
      throw new UsageError(`ACTION is missing; see temper ${data.name} --help`);
    },
  };
}

function tellHelp({ output }: Surroundings, text: string): number {
  output.line(text);
  return EXIT.ok;
}
