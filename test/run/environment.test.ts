/** Environment variables of Temper: the code names each in one file, and the others import its constant. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIST =
  'ls-files -co --exclude-standard core store play sdk workflows activities workers cli gpu-worker/temper_gpu';
/** A whole string, a member or a key: words of a message may name a variable anywhere. */
const NAMED = /(['"])(TEMPER_[A-Z_]+)\1|\.(TEMPER_[A-Z_]+)|\b(TEMPER_[A-Z_]+):/g;
/** It registers tsx, so it can import no TypeScript. Python's constants are generated. */
const EXEMPT = ['workers/typescript.js', 'gpu-worker/temper_gpu/contract.py'];

test('no variable of the environment is named in the code of two files', () => {
  const files = execFileSync('git', LIST.split(' '), { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const places = new Map<string, string[]>();
  for (const file of files.filter((name) => /\.(ts|js|py)$/.test(name) && !EXEMPT.includes(name))) {
    const found = [...readFileSync(join(ROOT, file), 'utf8').matchAll(NAMED)];
    for (const name of new Set(found.map((match) => match[2] ?? match[3] ?? match[4] ?? '')))
      places.set(name, [...(places.get(name) ?? []), file]);
  }
  expect(places.get('TEMPER_ENGINE_KEY')).toEqual(['core/contract-constants.ts']);
  expect([...places].filter(([, where]) => where.length > 1)).toEqual([]);
});
