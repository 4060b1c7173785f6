/** A command is data: main.ts parses its flags, prints its help and runs it. */
import type { Output } from '../terminal/output.ts';

export interface CommandOption {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** Shown after the flag in help, e.g. `NAME`. */
  readonly placeholder?: string;
  readonly description: string;
}

export type CommandOptions = Readonly<Record<string, CommandOption>>;
type FlagValue = string | boolean | (string | boolean)[] | undefined;
export type Flags = Readonly<Record<string, FlagValue>>;

export interface CommandContext {
  readonly flags: Flags;
  readonly positionals: readonly string[];
  /** The folder whose `.temper/` holds the state. */
  readonly project: string;
  readonly cwd: string;
  readonly env: Readonly<NodeJS.ProcessEnv>;
  readonly output: Output;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** What follows `temper`, e.g. `show RUN [--json]`. */
  readonly usage: string;
  readonly details?: readonly string[];
  readonly examples?: readonly string[];
  /** Names of the positional arguments, all required. */
  readonly positionals: readonly string[];
  /** True where the last of them may stand several times. */
  readonly repeats?: boolean;
  /** Those that may follow. */
  readonly optionalPositionals?: readonly string[];
  readonly options: CommandOptions;
  /** Commands of two words, named so: `schedule list`. */
  readonly actions?: readonly Command[];
  run(context: CommandContext): Promise<number>;
}

export function stringFlag(flags: Flags, name: string): string | null {
  const value = flags[name];
  return typeof value === 'string' ? value : null;
}

export function stringFlags(flags: Flags, name: string): string[] {
  const value = flags[name];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

export const JSON_OPTION = { type: 'boolean', description: 'print one JSON object' } as const;
