/** Values of flags and arguments from the words of a command line: the rule and the error of each kind. */
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import {
  type Argument,
  type Arguments,
  type ArgumentValues,
  type Flag,
  type Flags,
  type FlagValues,
  NONE,
  type NumberFlag,
} from '../../operations/flags.ts';
import { closestName } from '../../core/names/closest-name.ts';

export {
  requireCheckpointName as readCheckpointName,
  requireTrainedName as readTrainedName,
} from '../../core/names/policy-name.ts';

/** Given texts of each flag, in order. A flag without a value has an empty text for each use, or NEGATED. */
type GivenFlags = ReadonlyMap<string, readonly string[]>;

export const NEGATED = 'no';

export function readFlags<F extends Flags>(flags: F, given: GivenFlags): FlagValues<F> {
  const entries = Object.entries(flags).map(([name, flag]) => [name, readFlag(name, flag, given.get(name) ?? [])]);
  return Object.fromEntries(entries) as FlagValues<F>;
}

export function readArguments<A extends Arguments>(args: A, words: readonly string[]): ArgumentValues<A> {
  const entries = Object.entries(args).map(([name, argument], index) => [
    name,
    argument.repeats === true ? words.slice(index) : readArgument(argument, words[index]),
  ]);
  return Object.fromEntries(entries) as ArgumentValues<A>;
}

function readFlag(name: string, flag: Flag, given: readonly string[]): unknown {
  const text = given.at(-1);
  if (flag.kind === 'boolean') {
    if (text === undefined) return flag.negatable === true ? null : false;
    return text !== NEGATED;
  }
  if (text === undefined && flag.required !== undefined) throw badConfig(`--${name} is missing; ${flag.required}`);
  const naming = { name: `--${name}`, prefix: `--${name} ` };
  if (flag.kind === 'texts') return given.map((each) => readText(flag, each, naming));
  if (text === undefined) return null;
  if (text === NONE && isNumberFlag(flag) && flag.none === true) return NONE;
  return readValue(flag, text, naming);
}

/** Name of a value in errors: a flag, or a setting of `temper set`. */
interface ValueNaming {
  readonly name: string;
  /** Text before a value, e.g. `--steps ` or `steps=`. */
  readonly prefix: string;
}

function readValue(
  flag: Exclude<Flag, { kind: 'boolean' | 'texts' }>,
  text: string,
  naming: ValueNaming,
): string | number | object {
  switch (flag.kind) {
    case 'text':
      return readText(flag, text, naming);
    case 'choice':
      if (flag.choices.includes(text)) return text;
      throw badValue(naming, `one of ${flag.choices.join(', ')}`, text, flag.choices[0] ?? flag.placeholder);
    case 'list':
      return text.split(',').map((item) => item.trim());
    case 'ranges':
      return readRanges(text, naming);
    case 'json':
      return readObject(text, naming);
    case 'integer':
    case 'number':
    case 'port':
    default:
      return readNumber(flag, text, naming);
  }
}

function readText({ form }: Extract<Flag, { kind: 'text' | 'texts' }>, text: string, naming: ValueNaming): string {
  if (form === undefined || form.pattern.test(text)) return text;
  throw badValue(naming, form.rule, text, form.example);
}

/** Upper bound of ranges, so that a typo cannot fill the memory; no model has that many layers. */
const MAX_RANGE = 10_000;

function readRanges(text: string, naming: ValueNaming): readonly number[] {
  const numbers = text.split(',').flatMap((item) => {
    const [, first, last = first] = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(item) ?? [];
    const length = Number(last) - Number(first) + 1;
    if (!(length >= 1 && length <= MAX_RANGE && Number(last) <= MAX_RANGE))
      throw badValue(naming, 'numbers and ranges with commas between them', text, '0-3,7');
    return Array.from({ length }, (_, index) => Number(first) + index);
  });
  return [...new Set(numbers)].toSorted((a, b) => a - b);
}

function readObject(text: string, naming: ValueNaming): object {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Not JSON: same error as for JSON of another type.
  }
  throw badValue(naming, 'an object as JSON', text, `'{"name":"value"}'`);
}

const NUMBERS: Readonly<Record<NumberFlag['kind'], string>> = {
  integer: 'a whole number',
  number: 'a number',
  port: 'a port',
};
const PORTS = { minimum: 1, maximum: 65_535 } as const;

function isNumberFlag(flag: Flag): flag is NumberFlag {
  return Object.hasOwn(NUMBERS, flag.kind);
}

function readNumber(flag: NumberFlag, given: string, naming: ValueNaming): number {
  const text = given.trim();
  const { kind, placeholder } = flag;
  const { minimum, maximum } = kind === 'port' ? { ...PORTS, ...flag } : flag;
  const number = Number(text);
  const isNumber = text !== '' && (kind === 'number' ? Number.isFinite(number) : Number.isSafeInteger(number));
  if (isNumber && number >= (minimum ?? -Infinity) && number <= (maximum ?? Infinity)) return number;
  throw badValue(naming, `${NUMBERS[kind]}${describeRange(minimum, maximum)}`, text, placeholder);
}

function describeRange(minimum: number | undefined, maximum: number | undefined): string {
  if (minimum === undefined) return maximum === undefined ? '' : ` of at most ${maximum}`;
  return maximum === undefined ? ` of at least ${minimum}` : ` from ${minimum} to ${maximum}`;
}

function badValue({ name, prefix }: ValueNaming, rule: string, text: string, example: string): TemperError {
  return badConfig(`${name} must be ${rule}, got ${JSON.stringify(text)}; pass ${prefix}${example}`);
}

function readArgument({ placeholder, choices }: Argument, word: string | undefined): string | null {
  if (word === undefined) return null;
  if (choices === undefined || choices.includes(word)) return word;
  const guess = closestName(word, choices);
  const remedy = guess === null ? 'pass one of them' : `did you mean ${guess}?`;
  throw badConfig(`${placeholder} must be one of ${choices.join(', ')}, got ${JSON.stringify(word)}; ${remedy}`);
}
