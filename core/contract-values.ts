/** What the contract's types are made of. */
import { z } from 'zod';

/** A run's name is part of file names, of `run@step` and of workflow ids. */
export const NAME_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;
export const name = z.string().regex(NAME_PATTERN);
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
export const count = z.int().min(0);
export const positive = z.int().min(1);
