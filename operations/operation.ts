/** An operation as data: its command, its action in `temper ui`, its tool for agents and its function for scripts come from it. */
import type { RunStateName } from '../views/api/run-views.ts';
import type { Store } from '../store/store.ts';
import type { Arguments, ArgumentValues, Definition, Flag, Flags, FlagValues } from './flags.ts';

/** Project and environment that locate the server. */
export interface ProjectPlace {
  /** Folder whose `.temper/` holds the state. */
  readonly project: string;
  readonly env: Readonly<NodeJS.ProcessEnv>;
}

/** Where an operation works, and for whom. */
export interface Place extends ProjectPlace {
  readonly cwd: string;
  /** The project's store, or the one that was named instead; opened by the first call. */
  readonly store: () => Promise<Store>;
  /** Names this request: sent again, it does nothing twice, also after a restart of who sends it. */
  readonly requestId: string;
  /** Shows how far it is, in the place of the last line; absent: nobody looks. */
  readonly showProgress?: (line: string) => void;
  /** Aborted when the process ends. */
  readonly signal: AbortSignal;
  /** Aborted once nobody waits for the answer. */
  readonly gone: AbortSignal;
}

type Camel<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name;

/** Values of arguments and flags, the flags' names in camel case. */
export type Input<F extends Flags, A extends Arguments> = ArgumentValues<A> & FlagInput<F>;

export type FlagInput<F extends Flags> = {
  readonly [Name in keyof F & string as Camel<Name>]: FlagValues<F>[Name];
};

/** A table for people, among lines of text. */
export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export type Lines = readonly (string | Table)[];

/** What would happen, and the command that does it if the operation is none. */
export interface Plan {
  readonly says: string;
  readonly command: string;
}

/** The button of an operation in `temper ui`. */
interface Button {
  readonly label: string;
  /** What the button is shown with; absent: a run. */
  readonly on?: 'checkpoint' | 'production' | 'schedule';
  /** States of a run in which it makes sense; absent: all. */
  readonly states?: readonly RunStateName[];
  readonly isDangerous?: boolean;
  /** One of the first that a person looks for. */
  readonly isMain?: boolean;
}

export interface Operation<
  F extends Flags = Flags,
  A extends Arguments = Arguments,
  Output = unknown,
  Where extends Place = Place,
> extends Definition<F, A> {
  /** `pays`: takes long, and costs tokens or the time of a GPU. */
  readonly effect: 'reads' | 'changes' | 'pays';
  /** Needs a Temporal server. */
  readonly needsServer?: boolean;
  /** For command lines and scripts alone, because it reads or writes where its input says. */
  readonly isLocal?: boolean;
  /** Sends a key of a worker's environment where its input says. No agent may ask for it: agents read what models wrote. */
  readonly sendsKey?: boolean;
  readonly button?: Button;
  /** Says what would happen, or throws why it cannot: `temper ui` asks before it acts. */
  says?(input: Input<F, A>, place: Where): Promise<string | Plan>;
  /** Imports its work when it is called. Returns what `--json` prints. */
  run(input: Input<F, A>, place: Where): Promise<Output>;
  /** For people. */
  lines(output: Output, input: Input<F, A>): Lines | Promise<Lines>;
  /** What is wrong with a part of it: a command prints them as errors, and ends with 1. */
  problems?(output: Output): readonly string[];
}

/** Infers the types of input and output. */
export function defineOperation<const F extends Flags, const A extends Arguments, Output, Where extends Place = Place>(
  operation: Operation<F, A, Output, Where>,
): Operation<F, A, Output, Where> {
  return operation;
}

/** `keep-last` → `keepLast` */
export function memberName(flag: string): string {
  return flag.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** One object of the values of a command line. */
export function inputOf<F extends Flags, A extends Arguments>(
  { flags: table }: Pick<Operation<F, A>, 'flags'>,
  args: ArgumentValues<A>,
  flags: FlagValues<F>,
): Input<F, A> {
  const named = Object.keys(table).map((name) => [memberName(name), flags[name as keyof F]]);
  return { ...args, ...Object.fromEntries(named) } as Input<F, A>;
}

/** By name, because modules list what they export in an order that depends on who loads them. */
export function listOperations(operations: Readonly<Record<string, Operation>>): Operation[] {
  return Object.values(operations).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Whether somebody who is not at this project's command line may ask for it. Views answer reads. */
export function isRemoteAction({ effect, isLocal }: Pick<Operation, 'effect' | 'isLocal'>): boolean {
  return effect !== 'reads' && isLocal !== true;
}

/** Whether an agent may ask for it over MCP. */
export function isAgentAction(operation: Pick<Operation, 'effect' | 'isLocal' | 'sendsKey'>): boolean {
  return isRemoteAction(operation) && operation.sendsKey !== true;
}

/** A member of an input: the flag that it is given by, or the argument, whose flag is null. */
export type Field = Flag & { readonly name: string; readonly flag: string | null; readonly isRequired: boolean };

export function fieldsOf({ arguments: args, flags }: Pick<Operation, 'arguments' | 'flags'>): Field[] {
  return [
    ...Object.entries(args).map(([name, { placeholder, optional, repeats }]) => ({
      kind: repeats === true ? ('texts' as const) : ('text' as const),
      placeholder,
      description: placeholder,
      name,
      flag: null,
      isRequired: optional !== true,
    })),
    ...Object.entries(flags).map(([flag, row]) => ({
      ...row,
      name: memberName(flag),
      flag,
      isRequired: row.kind !== 'boolean' && row.required !== undefined,
    })),
  ];
}
