/** Parses a command line with node:util's parseArgs. Every mistake is a BadConfig with the flag and the remedy. */
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { badConfig } from '../../core/contract/failures.ts';
import type { Arguments, ArgumentValues, Definition, Flag, Flags, FlagValues } from '../../operations/flags.ts';
import { closestName } from '../../core/names/closest-name.ts';
import { checkFlagRules } from './flag-rules.ts';
import { usageOf } from './help.ts';
import { NEGATED, readArguments, readFlags } from './values.ts';

/** `--help` wins over whatever else is given or missing. */
export type CommandLine<F extends Flags, A extends Arguments> =
  | { readonly isHelp: true; readonly isWhole: boolean }
  | { readonly isHelp: false; readonly flags: FlagValues<F>; readonly args: ArgumentValues<A> };

const HELP = 'help';
/** `--help all`: every flag. */
const ALL = 'all';

export function parseCommandLine<F extends Flags, A extends Arguments>(
  command: Definition<F, A>,
  words: readonly string[],
): CommandLine<F, A> {
  const options = { ...optionsOf(command.flags), [HELP]: { type: 'boolean', short: 'h' } } as const;
  const { tokens, positionals } = parseArgs({
    args: words.map((word) => (NEGATIVE_NUMBER.test(word) ? MARK + word : word)),
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const given = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    checkFlag(command, token);
    const negated = negatedBy(command.flags, token.name);
    const name = negated ?? ownName(command.flags, token.name);
    given.set(name, [...(given.get(name) ?? []), negated === null ? unmark(token.value ?? '') : NEGATED]);
  }
  if (given.has(HELP)) return { isHelp: true, isWhole: positionals.at(-1) === ALL };
  const args = positionals.map(unmark);
  checkCount(command, args);
  const flags = readFlags(command.flags, given);
  const effective = [...given].map(([name, texts]) => [name, texts.at(-1)!] as const);
  checkFlagRules(command.flags, new Map(effective.filter(([, text]) => text !== NEGATED)));
  return { isHelp: false, args: readArguments(command.arguments, args), flags };
}

/** Put before a negative number, which parseArgs takes for flags. No word of a command line has this character. */
const MARK = '\0';
const NEGATIVE_NUMBER = /^-\.?\d/;

function unmark(word: string): string {
  return word.startsWith(MARK) ? word.slice(MARK.length) : word;
}

function optionsOf(flags: Flags): NonNullable<ParseArgsConfig['options']> {
  const entries = Object.entries(flags).flatMap(([name, flag]) => {
    const option = { type: flag.kind === 'boolean' ? ('boolean' as const) : ('string' as const) };
    return [name, otherName(flag) ?? name].map((each) => [each, option] as const);
  });
  return Object.fromEntries(entries);
}

function otherName(flag: Flag): string | null {
  return flag.kind === 'boolean' ? null : (flag.also ?? null);
}

/** Main name of a flag that was given by its alternative name. */
function ownName(flags: Flags, given: string): string {
  return Object.keys(flags).find((name) => otherName(flags[name]!) === given) ?? given;
}

const NO = 'no-';

/** Flag that `--no-NAME` switches off; null if there is none. */
function negatedBy(flags: Flags, given: string): string | null {
  const name = given.startsWith(NO) ? given.slice(NO.length) : '';
  const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
  return flag?.kind === 'boolean' && flag.negatable === true ? name : null;
}

interface FlagToken {
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function checkFlag(command: Definition, token: FlagToken): void {
  const flag = findFlag(command.flags, token.name);
  if (flag === null) throw badConfig(`unknown flag ${token.rawName}; ${remedyOf(command, token.name)}`);
  if (flag.kind === 'boolean') {
    if (token.value === undefined) return;
    throw badConfig(
      `${token.rawName} takes no value, got ${JSON.stringify(token.value)}; write ${token.rawName} alone`,
    );
  }
  // parseArgs would take the next flag as the value: `--run --steps 3` lacks a value, `--seed -1` does not.
  if (token.value === undefined || (token.inlineValue !== true && token.value.startsWith('--')))
    throw badConfig(`${token.rawName} needs a value; write ${token.rawName} ${flag.placeholder}`);
}

function remedyOf({ name, flags, absent = {} }: Definition, unknown: string): string {
  const known = Object.keys(absent).find((begin) => unknown.startsWith(begin));
  if (known !== undefined) return absent[known]!;
  const guess = closestName(unknown, [...Object.keys(optionsOf(flags)), HELP]);
  return guess === null ? `see temper ${name} --help` : `did you mean --${guess}?`;
}

function findFlag(flags: Flags, name: string): Flag | null {
  if (name === HELP) return { kind: 'boolean', description: '' };
  const known = negatedBy(flags, name) ?? ownName(flags, name);
  return Object.hasOwn(flags, known) ? (flags[known] ?? null) : null;
}

function checkCount(command: Definition, words: readonly string[]): void {
  const all = Object.values(command.arguments);
  const missing = all[words.length];
  if (missing !== undefined && missing.optional !== true)
    throw badConfig(`${missing.placeholder} is missing; usage: temper ${usageOf(command)}`);
  const extra = words[all.length];
  if (extra !== undefined && all.at(-1)?.repeats !== true)
    throw badConfig(`unexpected argument ${JSON.stringify(extra)}; usage: temper ${usageOf(command)}`);
}
