/** From flags to a run's configuration: parsed, held to the contract, and every complaint in terms of flags. */
import { z } from 'zod';
import { LOSS_NAMES, type LossConfig, RunConfig, usersOfOption } from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { defaultRunConfig } from '../../core/run-defaults.ts';
import type { RunOptions } from '../../core/run-defaults.ts';
import type { CommandOptions, Flags } from '../command-line/command.ts';
import { UsageError } from '../command-line/errors.ts';
import { RUN_FLAGS } from './run-flag-table.ts';
import type { FlagKind, RunFlag } from './run-flag-table.ts';

const PLACEHOLDERS: Readonly<Record<FlagKind, string>> = {
  integer: 'N',
  number: 'X',
  boolean: '',
  text: 'NAME',
  list: 'A,B',
};

const DEFAULTS = defaultRunConfig({ run: 'run', agent: 'agent', baseModel: 'model' });
/** Its default depends on another flag, or is none. */
const NO_DEFAULT = new Set(['baseModel', 'finalLearningRateShare', 'train.loss.epsilonLow', 'train.loss.epsilonHigh']);

export const RUN_OPTIONS: CommandOptions = Object.fromEntries(
  RUN_FLAGS.map((row) => [
    row.flag,
    row.kind === 'boolean'
      ? { type: 'boolean', description: row.description }
      : { type: 'string', placeholder: PLACEHOLDERS[row.kind], description: `${row.description}${shownDefault(row)}` },
  ]),
);

function shownDefault({ path }: RunFlag): string {
  const value = path.split('.').reduce<unknown>((nested, key) => (nested as Record<string, unknown>)[key], DEFAULTS);
  return value === null || NO_DEFAULT.has(path) ? '' : ` [${JSON.stringify(value)}]`;
}

/** The values that were given, as nested fields: what is laid over the defaults. */
export function parseRunFlags(flags: Flags): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>();
  for (const row of RUN_FLAGS) {
    const value = flags[row.flag];
    if (value !== undefined) values.set(row.path, parseValue(row, value, flagNaming(row)));
  }
  return values;
}

/** How a field is called where it was given: as a flag of `temper train`, or as a setting of `temper set`. */
export interface FieldNaming {
  readonly name: string;
  /** Before a placeholder, e.g. `--steps ` or `steps=`. */
  readonly prefix: string;
  readonly help: string;
}

function flagNaming({ flag }: RunFlag): FieldNaming {
  return { name: `--${flag}`, prefix: `--${flag} `, help: 'temper train --help' };
}

export function parseValue({ kind }: RunFlag, value: unknown, { name, prefix }: FieldNaming): unknown {
  if (kind === 'boolean') return value === true;
  const text = String(value).trim();
  if (kind === 'text') return text;
  if (kind === 'list') return text.split(',').map((item) => item.trim());
  const number = Number(text);
  const isFine = text !== '' && (kind === 'integer' ? Number.isSafeInteger(number) : Number.isFinite(number));
  if (isFine) return number;
  const wanted = kind === 'integer' ? 'a whole number' : 'a number';
  throw new UsageError(`${name} must be ${wanted}, got ${JSON.stringify(text)}; pass ${prefix}${PLACEHOLDERS[kind]}`);
}

/** The given values on top of `start` and the defaults, each held to its field's schema, then all of them to the rules between fields. */
export function applyRunFlags(
  start: RunOptions,
  values: ReadonlyMap<string, unknown>,
  recorded: LossConfig | null = null,
): RunConfig {
  const options = structuredClone(start) as unknown as Record<string, unknown>;
  for (const [path, value] of values) {
    const row = RUN_FLAGS.find((candidate) => candidate.path === path)!;
    checkField(row, value, flagNaming(row));
    setPath(options, path.split('.'), value);
  }
  try {
    return RunConfig.parse(defaultRunConfig(options as RunOptions, recorded));
  } catch (error) {
    if (error instanceof TemperError) throw new UsageError(nameFlags(error.message), { cause: error });
    throw error;
  }
}

export function checkField({ path, because }: RunFlag, value: unknown, { name, help }: FieldNaming): void {
  const result = fieldSchema(path).safeParse(value);
  const issue = result.error?.issues[0];
  if (issue === undefined) return;
  const reason = because === undefined ? '' : ` (${because})`;
  throw new UsageError(`${name} must be ${describeRule(issue)}${reason}, got ${JSON.stringify(value)}; see ${help}`);
}

function fieldSchema(path: string): z.ZodType {
  if (path === 'train.loss.name') return z.enum(LOSS_NAMES);
  const option = /^train\.loss\.(.+)$/.exec(path)?.[1];
  if (option !== undefined) return [...usersOfOption(option).values()][0]!;
  return path.split('.').reduce<z.ZodType>((schema, key) => (schema as z.ZodObject).shape[key] as z.ZodType, RunConfig);
}

function describeRule(issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_small') return `${issue.inclusive === false ? 'greater than' : 'at least'} ${issue.minimum}`;
  if (issue.code === 'too_big') return `${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`;
  if (issue.code === 'invalid_value') return `one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'invalid_format' && issue.format === 'regex') return `a name that matches ${issue.pattern}`;
  return `valid (${issue.message})`;
}

/** The rules between fields speak of fields, as `groupSize` or `loss.name`; a person typed flags. */
function nameFlags(message: string): string {
  return RUN_FLAGS.reduce((text, { flag, path }) => {
    const field = path.split('.').at(-1)!;
    return field === flag ? text : text.replaceAll(new RegExp(`\\b(?:loss\\.)?${field}\\b`, 'g'), `--${flag}`);
  }, message);
}

function setPath(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [key, ...rest] = path;
  if (key === undefined) return;
  if (rest.length === 0) target[key] = value;
  else setPath((target[key] ??= {}) as Record<string, unknown>, rest, value);
}
