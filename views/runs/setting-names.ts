/** Names of settings as people type them: `train.lora.rank` is `lora-rank`. The contract's fields say them. */
import type { z } from 'zod';
import { RunConfig } from '../../core/contract.ts';

/** A type that wraps others, or may be one of several. */
interface Definition {
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
}

let known: ReadonlyMap<string, string> | null = null;

/** The flag of a field; the path itself if none sets it. */
export function settingName(path: string): string {
  known ??= new Map(namesIn(RunConfig, ''));
  return known.get(path) ?? path;
}

function namesIn(schema: z.ZodType, path: string): [string, string][] {
  const { shape, innerType, options } = schema.def as Definition;
  const own = path === '' ? [] : nameOf(schema, path);
  const members = Object.entries(shape ?? {}).flatMap(([key, member]) =>
    namesIn(member, path === '' ? key : `${path}.${key}`),
  );
  const inner = [...(innerType === undefined ? [] : [innerType]), ...(options ?? [])];
  return [...members, ...inner.flatMap((each) => namesIn(each, path)), ...own];
}

function nameOf(schema: z.ZodType, path: string): [string, string][] {
  const option = schema.meta()?.option;
  if (option === undefined || option.section === 'warm-start') return [];
  const field = path.split('.').at(-1)!;
  return [[option.path ?? path, option.flag ?? field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)]];
}
