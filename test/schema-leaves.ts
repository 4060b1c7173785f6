/** The fields of a zod schema, through objects within objects; of a union each field once. */
import { z } from 'zod';

export interface Leaf {
  /** `engine.url`. */
  readonly path: string;
  readonly schema: z.ZodType;
}

export function leavesOf(schema: z.ZodType, prefix = ''): Leaf[] {
  const { inner } = unwrapped(schema);
  if (inner instanceof z.ZodDiscriminatedUnion) {
    const leaves = inner.options.flatMap((option) => leavesOf(option as z.ZodType, prefix));
    return [...new Map(leaves.map((leaf) => [leaf.path, leaf])).values()];
  }
  if (!(inner instanceof z.ZodObject)) return [{ path: prefix, schema }];
  return Object.entries(inner.shape as Record<string, z.ZodType>).flatMap(([name, field]) =>
    leavesOf(field, prefix === '' ? name : `${prefix}.${name}`),
  );
}

/** Without its default, and without null. */
export function unwrapped(schema: z.ZodType): { inner: z.ZodType; nullable: boolean } {
  if (schema instanceof z.ZodNullable) return { ...unwrapped(schema.unwrap() as z.ZodType), nullable: true };
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault) return unwrapped(schema.unwrap() as z.ZodType);
  return { inner: schema, nullable: false };
}

/** The value at a path such as `engine.url`. */
export function fieldOf(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((nested, key) => (nested as Record<string, unknown>)[key], value);
}

/** Sets the value at a path, and makes the objects that it leads through. */
export function setField(target: Record<string, unknown>, path: string, value: unknown): object {
  const [key = '', ...rest] = path.split('.');
  if (rest.length === 0) target[key] = value;
  else setField((target[key] ??= {}) as Record<string, unknown>, rest.join('.'), value);
  return target;
}
