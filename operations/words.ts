/** An input as the words of its command: checked by the parser of the command line, and shown as a command. */
import { badConfig } from '../core/contract/failures.ts';
import type { Flag } from './flags.ts';
import { fieldsOf, type Operation } from './operation.ts';

export interface Words {
  readonly args: readonly string[];
  /** `--step`, `5`; a flag without a value stands alone. */
  readonly flags: readonly (readonly [string] | readonly [string, string])[];
}

/** Words of an object of JSON. Throws for members that the operation does not have. */
export function wordsOf(operation: Operation, given: Readonly<Record<string, unknown>>): Words {
  const fields = fieldsOf(operation);
  const members = fields.map(({ name }) => name);
  const unknown = Object.keys(given).find((name) => !members.includes(name));
  if (unknown !== undefined)
    throw badConfig(`${unknown} is no parameter of ${operation.name}, only ${members.join(', ')}; leave it out`);
  return {
    args: fields.flatMap(({ name, flag }) => (flag === null ? textsOf(name, given[name]) : [])),
    flags: fields.flatMap((field) => (field.flag === null ? [] : flagWords(field.flag, field, given[field.name]))),
  };
}

function flagWords(name: string, flag: Flag, value: unknown): Words['flags'] {
  if (value === undefined || value === null) return [];
  if (flag.kind === 'boolean') {
    if (typeof value !== 'boolean')
      throw badConfig(`${name} must be true or false, got ${clip(value)}; pass one of them`);
    if (value) return [[`--${name}`]];
    return flag.negatable === true ? [[`--no-${name}`]] : [];
  }
  if (flag.kind === 'json') return [[`--${name}`, JSON.stringify(value)]];
  const texts = textsOf(name, value);
  if (flag.kind === 'texts') return texts.map((text) => [`--${name}`, text] as const);
  return texts.length === 0 ? [] : [[`--${name}`, texts.join(',')]];
}

function textsOf(name: string, value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.map((each) => {
    if (typeof each === 'string' || typeof each === 'number') return String(each);
    throw badConfig(`${name} must be text or a number, got ${clip(each)}; pass one of them`);
  });
}

function clip(value: unknown): string {
  return JSON.stringify(value).slice(0, 80);
}

/** Words for a parser, in which no value is taken for a flag. */
export function parsedWords({ args, flags }: Words): string[] {
  return [...flags.map((flag) => flag.join('=')), '--', ...args];
}

/** The command as a person can paste it into a shell. */
export function commandOf({ name }: Pick<Operation, 'name'>, { args, flags }: Words): string {
  return shellText(['temper', ...name.split(' '), ...args, ...flags.flat()]);
}

/** Words of a command; each is quoted if a shell would read it otherwise. */
export function shellText(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');
}

export function capitalised(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
