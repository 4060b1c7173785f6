/**
 * The options of the SDK's functions and classes, each described once, where it is used. Others are refused: a typo would
 * silently run another experiment. A JavaScript caller may pass values of any type.
 */
import { z } from 'zod';

import { badConfig, showValue } from '../../core/contract/failures.ts';
import { isWeight } from '../../core/rules/given-values.ts';

/** A schema for each option of `T`, optional where the option is. */
export type Shape<T> = { readonly [K in keyof T]-?: object extends Pick<T, K> ? z.ZodOptional : z.ZodCustom };

interface Rest<T> {
  /** Whose options they are, for messages; by default the function. */
  readonly owner?: (options: T) => string;
  /** Mistakes in options that are right by themselves; null if there is none. */
  readonly rules?: readonly ((options: T) => string | null)[];
}

/** Throws BadConfig unless the options are those that `of` takes; returns them as they are. */
export function takes<T extends object>(of: string, shape: Shape<T>, rest: Rest<T> = {}): <O>(options: O) => O {
  const schema = z.strictObject(shape);
  return (options) => {
    const complaint = findProblem(of, schema, options, rest);
    if (complaint !== null) throw badConfig(complaint);
    return options;
  };
}

function findProblem<T extends object>(of: string, schema: z.ZodObject, options: unknown, rest: Rest<T>) {
  const { owner = () => of, rules = [] } = rest;
  const known = Object.keys(schema.shape);
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    return `${of} must be given an object of options, got ${showValue(options)}; pass { ${known.join(', ')} }`;
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    return `${of} has the options ${known.join(', ')}, got ${unknown}; correct its name, or remove it`;
  const read = Object.fromEntries(known.map((name) => [name, Reflect.get(options, name) as unknown]));
  const missing = known.find((name) => read[name] === undefined && !(schema.shape[name] instanceof z.ZodOptional));
  if (missing !== undefined) return `${of} must be given ${missing}, got none; pass { ${missing}: … }`;
  const issue = schema.safeParse(read).error?.issues[0];
  if (issue !== undefined) return `${String(issue.path[0])} of ${owner(read as T)} ${issue.message}`;
  return rules.map((find) => find(read as T)).find((complaint) => complaint !== null) ?? null;
}

/** `show`: for values that may be secret. */
export function must(
  rule: string,
  is: (value: unknown) => boolean,
  remedy: string,
  show: (value: unknown) => string = showValue,
): z.ZodCustom {
  return z.custom(is, { error: ({ input }) => `must be ${rule}, got ${show(input)}; ${remedy}` });
}

/** Checked by what reads it, if at all. */
export const anything = z.custom<unknown>(() => true);

/** Required options that may be anything. */
export function given<const N extends string>(...names: readonly N[]): Record<N, typeof anything> {
  return Object.fromEntries(names.map((name) => [name, anything])) as Record<N, typeof anything>;
}

/** Options that may be anything. */
export function optional<const N extends string>(...names: readonly N[]): Record<N, z.ZodOptional> {
  return Object.fromEntries<z.ZodOptional>(names.map((name) => [name, anything.optional()])) as Record<
    N,
    z.ZodOptional
  >;
}

export function whole(least: number, remedy: string, most = Infinity): z.ZodCustom {
  const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`;
  const is = (value: unknown): boolean =>
    Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most;
  return must(`a whole number ${range}`, is, remedy);
}

export function amount(remedy: string): z.ZodCustom {
  return must('a number of at least 0', (value) => Number.isFinite(value) && Number(value) >= 0, remedy);
}

export function text(remedy: string, rule = 'a text'): z.ZodCustom {
  return must(rule, isText, remedy);
}

export function textUpTo(length: number, remedy: string): z.ZodCustom {
  const is = (value: unknown): boolean => typeof value === 'string' && value.trim() !== '' && value.length <= length;
  return must(`text of at most ${length} characters`, is, remedy);
}

export function callable(remedy: string): z.ZodCustom {
  return must('a function', (value) => typeof value === 'function', remedy);
}

export function oneOf(values: readonly unknown[], remedy: string): z.ZodCustom {
  const shown = values.map((value) => `'${String(value)}'`);
  const rule = `${shown.slice(0, -1).join(', ')} or ${shown.at(-1)}`;
  return must(rule, (value) => values.includes(value), remedy);
}

export const flag = must('true or false', (value) => typeof value === 'boolean', 'pass true');

/** The weights of a judge's score and of the agent's own reward. */
export function weights(judge: string): z.ZodCustom {
  const is = (value: unknown): boolean => {
    const { [judge]: share, agent, ...others } = (value ?? {}) as Readonly<Record<string, unknown>>;
    return isWeight(share) && isWeight(agent) && share > 0 && Object.keys(others).length === 0;
  };
  const rule = `{ ${judge}, agent }, numbers from 0 to 1000000, and ${judge} above 0 (else it has no effect)`;
  return must(rule, is, `pass for example { ${judge}: 1, agent: 0.5 }, or remove reward`);
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Texts that a process can be given. */
export function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && !each.includes('\0'));
}

export function areTextsByName(value: unknown): value is Readonly<Record<string, string>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && areTexts(Object.values(value));
}
