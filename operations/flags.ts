/** Flags and arguments as data: what each takes, and the type of its value. */

/** Flag value that unsets an option. */
export const NONE = 'none';

interface AnyFlag {
  /** Heading in help, if the command has many flags. */
  readonly heading?: string;
  /** Of many flags, help shows those that most people need. */
  readonly isMain?: true;
  /** Flags of which one must be given, too: `model`, or with a value, `format gguf`. */
  readonly needs?: readonly string[];
  /** Flags that must not be given with it, written likewise; said on one of the two sides. */
  readonly excludes?: readonly string[];
}

interface BooleanFlag extends AnyFlag {
  readonly kind: 'boolean';
  /** True if `--no-NAME` can switch off what the project or another run has switched on. */
  readonly negatable?: true;
  readonly description: string;
  readonly default?: string;
}

interface ValueFlag extends AnyFlag {
  /** Shown after the flag, e.g. `NAME`. */
  readonly placeholder: string;
  readonly description: string;
  /** Alternative name, as other commands call it. */
  readonly also?: string;
  /** Default, or what it depends on; help shows it in brackets. */
  readonly default?: string;
  /** Remedy if a required flag is missing. */
  readonly required?: string;
}

/** `texts` may be given several times. */
interface TextFlag<Kind extends 'text' | 'texts'> extends ValueFlag {
  readonly kind: Kind;
  /** Required form: as a regular expression, in words, and by example. */
  readonly form?: { readonly pattern: RegExp; readonly rule: string; readonly example: string };
}

/** Items with commas between them. */
interface ListFlag extends ValueFlag {
  readonly kind: 'list';
}

/** Whole numbers and ranges of them with commas between: `0-3,7`. */
interface RangesFlag extends ValueFlag {
  readonly kind: 'ranges';
}

/** An object as JSON. */
interface JsonFlag extends ValueFlag {
  readonly kind: 'json';
}

export interface NumberFlag extends ValueFlag {
  readonly kind: 'integer' | 'number' | 'port';
  readonly minimum?: number;
  readonly maximum?: number;
  /** `none` may stand in the place of a number. */
  readonly none?: true;
}

interface ChoiceFlag extends ValueFlag {
  readonly kind: 'choice';
  readonly choices: readonly string[];
}

export type Flag =
  | BooleanFlag
  | TextFlag<'text'>
  | TextFlag<'texts'>
  | ListFlag
  | RangesFlag
  | JsonFlag
  | NumberFlag
  | ChoiceFlag;
export type Flags = Readonly<Record<string, Flag>>;

type GivenValue<F extends Flag> = F extends { kind: 'choice'; choices: readonly (infer Choice)[] }
  ? Choice
  : F extends { kind: NumberFlag['kind'] }
    ? F extends { none: true }
      ? number | typeof NONE
      : number
    : F extends { kind: 'list' }
      ? readonly string[]
      : F extends { kind: 'ranges' }
        ? readonly number[]
        : F extends { kind: 'json' }
          ? object
          : string;

type FlagValue<F extends Flag> = F extends { kind: 'boolean' }
  ? F extends { negatable: true }
    ? boolean | null
    : boolean
  : F extends { kind: 'texts' }
    ? readonly string[]
    : F extends { required: string }
      ? GivenValue<F>
      : GivenValue<F> | null;

/** Values of flags. A missing flag is null, false (null if it can be negated) or an empty list. */
export type FlagValues<All extends Flags> = { readonly [Name in keyof All]: FlagValue<All[Name]> };

export interface Argument {
  /** Name in usage, e.g. `RUN`. */
  readonly placeholder: string;
  readonly choices?: readonly string[];
  readonly optional?: true;
  /** For the last argument: it may be repeated. */
  readonly repeats?: true;
}

/** Arguments by name, in the order of the command line. */
export type Arguments = Readonly<Record<string, Argument>>;

type ArgumentText<A extends Argument> = A extends { choices: readonly (infer Choice)[] } ? Choice : string;
type ArgumentValue<A extends Argument> = A extends { repeats: true }
  ? readonly string[]
  : A extends { optional: true }
    ? ArgumentText<A> | null
    : ArgumentText<A>;
export type ArgumentValues<All extends Arguments> = { readonly [Name in keyof All]: ArgumentValue<All[Name]> };

/** Headings of `temper --help`, in order. */
export const GROUPS = [
  'Start',
  'Make data',
  'Look',
  'Steer',
  'Use what was trained',
  'Take rewards from people',
  'Operate',
] as const;

export interface Definition<F extends Flags = Flags, A extends Arguments = Arguments> {
  readonly name: string;
  /** Heading of a command of one word. */
  readonly group?: (typeof GROUPS)[number];
  readonly summary: string;
  /** Usage after `temper`, if arguments and flags do not show it. */
  readonly usage?: string;
  readonly details?: readonly string[];
  readonly examples?: readonly string[];
  readonly arguments: A;
  readonly flags: F;
  /** Flags of similar commands that this one does not take, by prefix, with what to do instead. */
  readonly absent?: Readonly<Record<string, string>>;
}

export const RUN_ARGUMENT = { placeholder: 'RUN' } satisfies Argument;
export const CHECKPOINT_ARGUMENT = { placeholder: 'CHECKPOINT' } satisfies Argument;
export const CHECKPOINT_HELP = [
  'CHECKPOINT is RUN or RUN@latest (its last step), RUN@STEP, RUN@best (highest reward on held-out scenarios),',
  'RUN@production (see temper production promote), or RUN~BRANCH@STEP (on a branch that a rollback has left).',
] as const;
export const JSON_FLAG = { kind: 'boolean', description: 'print one JSON object' } satisfies Flag;
export const REASON_FLAG = {
  kind: 'text',
  placeholder: 'TEXT',
  description: 'recorded with the run',
} satisfies Flag;
