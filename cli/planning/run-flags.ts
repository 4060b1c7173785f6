/** A run's configuration from flags, checked against the contract, with errors in terms of flags. */
import { z } from 'zod';
import { NONE } from '../../operations/flags.ts';
import { type BlobRef, LOSS_NAMES, RunConfig, usersOfOption } from '../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { LoraDifference } from '../../core/numbers/lora-difference.ts';
import { defaultRunConfig, type RunOptions } from '../../core/rules/run-defaults.ts';
import type { ChatTemplate } from './chat-template.ts';
import { SUPERVISED } from '../../core/rules/supervised.ts';
import type { RunFlag } from './run-flag.ts';
import { EXAMPLE_FLAGS, RUN_FLAG_ROWS, WARM_START_FLAGS } from './run-flag-table.ts';

const LORA = 'train.lora';

/** Every flag that sets a field. */
const ROWS: typeof RUN_FLAG_ROWS = [...RUN_FLAG_ROWS, ...Object.entries({ ...WARM_START_FLAGS, ...EXAMPLE_FLAGS })];

/**
 * Given values by the path of their field, to override the defaults. Without what is resolved elsewhere: the base model's
 * name, a file of examples.
 */
export function fieldsOf(
  flags: Readonly<Record<string, unknown>>,
  template: ChatTemplate | null,
  reference: BlobRef | null = null,
): ReadonlyMap<string, unknown> {
  const found = { 'chat-template': template?.sha256 ?? null, 'kl-reference': reference };
  const values = new Map<string, unknown>(Object.entries({ ...flags, ...found }));
  const rows = ROWS.filter(([flag]) => (values.get(flag) ?? null) !== null);
  return new Map(
    rows
      .filter(([flag]) => flag !== 'base-model' && flag !== 'warm-start')
      .map(([flag, row]) => [row.path, recordedAs(row, values.get(flag))]),
  );
}

function recordedAs({ value, kind }: RunFlag, given: unknown): unknown {
  if (kind === 'number' && given === NONE) return null;
  return value === undefined || given === false ? given : value;
}

/** Flag that sets a field of a run; null if none does. */
export function flagOf(path: string): string | null {
  return ROWS.find(([, row]) => row.path === path)?.[0] ?? null;
}

export function loraFlag({ option }: LoraDifference): string {
  return `--${flagOf(`${LORA}.${option}`)}`;
}

/** Overrides `start` and the defaults by the given values. Checks each field's schema, then the rules between fields. */
export function applyRunFlags(start: RunOptions, values: ReadonlyMap<string, unknown>): RunConfig {
  const options = structuredClone(start) as unknown as Record<string, unknown>;
  for (const [path, value] of values) {
    if (path === LORA && value === false) {
      keepAdapter(start, options);
      continue;
    }
    const found = ROWS.find(([, row]) => row.path === path);
    if (found !== undefined) checkField(found[1], value, { name: `--${found[0]}`, help: 'temper train --help' });
    setPath(options, path.split('.'), value);
  }
  try {
    return RunConfig.parse(defaultRunConfig(options as RunOptions));
  } catch (error) {
    if (error instanceof TemperError) throw badConfig(nameFlags(error.message), { cause: error });
    throw error;
  }
}

/** Handles `--no-full-fine-tuning`: keeps the adapter that the run starts from, or makes a new one. */
function keepAdapter({ train }: RunOptions, options: Record<string, unknown>): void {
  if (train?.lora === null) setPath(options, LORA.split('.'), {});
}

function checkField(
  { path, because }: RunFlag,
  value: unknown,
  { name, help }: { readonly name: string; readonly help: string },
): void {
  const result = fieldSchema(path).safeParse(value);
  const issue = result.error?.issues[0];
  if (issue === undefined) return;
  const reason = because === undefined ? '' : ` (${because})`;
  throw badConfig(`${name} must be ${describeRule(issue)}${reason}, got ${JSON.stringify(value)}; see ${help}`);
}

function fieldSchema(path: string): z.ZodType {
  if (path === 'train.loss.name') return z.enum(LOSS_NAMES);
  const option = /^train\.loss\.(.+)$/.exec(path)?.[1];
  if (option !== undefined) return [...usersOfOption(option).values()][0]!;
  return path.split('.').reduce<z.ZodType>((schema, key) => shapeOf(schema)[key] as z.ZodType, RunConfig);
}

function shapeOf(schema: z.ZodType): z.ZodRawShape {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodNullable
    ? shapeOf(schema.unwrap() as z.ZodType)
    : (schema as z.ZodObject).shape;
}

function describeRule(issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_small') return `${issue.inclusive === false ? 'greater than' : 'at least'} ${issue.minimum}`;
  if (issue.code === 'too_big') return `${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`;
  if (issue.code === 'invalid_value') return `one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'invalid_format' && issue.format === 'regex') return `a name that matches ${issue.pattern}`;
  return `valid (${issue.message})`;
}

/** Replaces names of fields, such as `groupSize` or `loss.name`, by the flags that the user typed. */
function nameFlags(message: string): string {
  return ROWS.reduce((text, [flag, { path, value }]) => {
    if (value === null) return text;
    if (path.startsWith(SUPERVISED)) return text.replaceAll(new RegExp(`\\b${path}\\b`, 'g'), `--${flag}`);
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
