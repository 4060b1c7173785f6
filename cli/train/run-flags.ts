/** From flags to a run's configuration: parsed, held to the contract, and every complaint in terms of flags. */
import { z } from 'zod';
import { LOSS_NAMES, type LossConfig, RunConfig, usersOfOption } from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { defaultRunConfig, type RunOptions } from '../../core/run-defaults.ts';
import type { ChatTemplate } from '../command-line/chat-template.ts';
import { UsageError } from '../command-line/errors.ts';
import type { RunFlag } from './run-flag.ts';
import { RUN_FLAG_ROWS, type RunFlagValues } from './run-flag-table.ts';

/** What was given, by the place of its field: to be laid over the defaults. The base model is another matter: its name is resolved. */
export function fieldsOf(flags: RunFlagValues, template: ChatTemplate | null): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>(Object.entries({ ...flags, 'chat-template': template?.sha256 ?? null }));
  return new Map(
    RUN_FLAG_ROWS.filter(([flag]) => flag !== 'base-model' && isGiven(values.get(flag))).map(([flag, { path }]) => [
      path,
      values.get(flag),
    ]),
  );
}

/** A switch says something only where it is on. */
function isGiven(value: unknown): boolean {
  return value !== null && value !== false;
}

/** The flag that sets a field; null where none does. */
export function flagOf(path: string): string | null {
  return RUN_FLAG_ROWS.find(([, row]) => row.path === path)?.[0] ?? null;
}

/** The given values on top of `start` and the defaults, each held to its field's schema, then all of them to the rules between fields. */
export function applyRunFlags(
  start: RunOptions,
  values: ReadonlyMap<string, unknown>,
  recorded: LossConfig | null = null,
): RunConfig {
  const options = structuredClone(start) as unknown as Record<string, unknown>;
  for (const [path, value] of values) {
    const found = RUN_FLAG_ROWS.find(([, row]) => row.path === path);
    if (found !== undefined) checkField(found[1], value, { name: `--${found[0]}`, help: 'temper train --help' });
    setPath(options, path.split('.'), value);
  }
  try {
    return RunConfig.parse(defaultRunConfig(options as RunOptions, recorded));
  } catch (error) {
    if (error instanceof TemperError) throw new UsageError(nameFlags(error.message), { cause: error });
    throw error;
  }
}

export function checkField(
  { path, because }: RunFlag,
  value: unknown,
  { name, help }: { readonly name: string; readonly help: string },
): void {
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
  return RUN_FLAG_ROWS.reduce((text, [flag, { path }]) => {
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
