/** Commands as data: name, flags, arguments and help, with a `run` that imports its work when it is called. */
import type {
  Argument,
  Arguments,
  ArgumentValues,
  Definition,
  Flag,
  Flags,
  FlagValues,
} from '../../operations/flags.ts';
import type { Output } from '../terminal/output.ts';

/** The process that a command runs in. */
export interface CommandEnvironment {
  /** Folder whose `.temper/` holds the state. */
  readonly project: string;
  readonly cwd: string;
  readonly env: Readonly<NodeJS.ProcessEnv>;
  /** This process does nothing else. */
  readonly ownsProcess?: boolean;
  readonly output: Output;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Environment, flags and arguments of one call of a command. */
export interface CommandContext<D extends Definition> extends CommandEnvironment {
  readonly flags: FlagValues<D['flags']>;
  readonly args: ArgumentValues<D['arguments']>;
}

export interface Command<F extends Flags = Flags, A extends Arguments = Arguments> extends Definition<F, A> {
  /** Commands of two words, named like `schedule list`. */
  readonly actions?: readonly Command[];
  /** Words from the project's configuration for such a call; its own flags override them. */
  projectFlags?(context: CommandContext<Definition<F, A>>): Promise<readonly string[]>;
  /** Imports the work when it is called, because help and the other commands load this file too. Returns the exit code. */
  run(context: CommandContext<Definition<F, A>>): Promise<number>;
}

/** Infers the types of flag and argument values from a command's tables. */
export function defineCommand<const F extends Flags, const A extends Arguments>(command: Command<F, A>): Command<F, A> {
  return command;
}

/** The same flags, each with these rules. */
export function withRules<F extends Flags>(flags: F, rules: Pick<Flag, 'needs' | 'excludes'>): F {
  return Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, { ...flag, ...rules }])) as unknown as F;
}

/** By default the working folder's `agent.ts`. */
export const AGENT_ARGUMENT = { placeholder: 'AGENT', optional: true } satisfies Argument;
export const ADAPTER_FLAG = {
  heading: 'The run',
  kind: 'text',
  placeholder: 'FOLDER',
  description: 'PEFT adapter to begin with: its base model, rank, alpha and modules are the run’s',
  excludes: ['full-fine-tuning'],
} satisfies Flag;
