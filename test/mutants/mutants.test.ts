import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import type { Mutant } from './mutant.ts';
import { MUTANTS, mutate } from './table.ts';

const ROOT = join(import.meta.dirname, '../..');

test('mutants have names of their own, and tests that exist', () => {
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
  expect(MUTANTS.filter((mutant) => !existsSync(join(ROOT, mutant.test)))).toEqual([]);
  const hasTitle = ({ test: file, title = '' }: Mutant) => readFileSync(join(ROOT, file), 'utf8').includes(title);
  expect(MUTANTS.filter((mutant) => !hasTitle(mutant))).toEqual([]);
});

test.each(MUTANTS)('$name: its anchor occurs exactly once', (mutant) => {
  const text = readFileSync(join(ROOT, mutant.file), 'utf8');
  expect(mutate(text, mutant)).not.toBe(text);
});

test('an anchor that is gone, or stands twice, names its mutant', () => {
  const mutant = { ...MUTANTS[0]!, name: 'odd', file: 'a.ts', find: 'x' };
  expect(() => mutate('y', mutant)).toThrow('the mutant "odd" must occur exactly once in a.ts, it occurs 0 times');
  expect(() => mutate('x x', mutant)).toThrow('it occurs 2 times');
});
