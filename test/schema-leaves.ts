/** The fields of a zod schema, through objects within objects. */
import { z } from 'zod';

export interface Leaf {
  /** `engine.url`. */
  readonly path: string;
  readonly schema: z.ZodType;
}

export function leavesOf(schema: z.ZodType, prefix = ''): Leaf[] {
  const { inner } = unwrapped(schema);
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
