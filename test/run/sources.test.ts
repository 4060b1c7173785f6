/** Each variable of the environment has one place in the code, which no linter knows. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PRODUCT =
  'core store play outbound views browser sdk workflows activities workers cli gpu-worker/temper_gpu'.split(' ');
/** A whole string, a member or a key: words of a message may name a variable anywhere. */
const NAMED = /(['"])(TEMPER_[A-Z_]+)\1|\.(TEMPER_[A-Z_]+)|\b(TEMPER_[A-Z_]+):/g;
/** It registers tsx, so it can import no TypeScript. Python's constants are generated. */
const EXEMPT = ['workers/typescript.js', 'gpu-worker/temper_gpu/contract.py'];

test('no variable of the environment is named in the code of two files', () => {
  const list = ['ls-files', '-co', '--exclude-standard', ...PRODUCT];
  const files = execFileSync('git', list, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const places = new Map<string, string[]>();
  for (const file of files.filter((each) => /\.(ts|js|py)$/.test(each) && existsSync(join(ROOT, each)))) {
    if (EXEMPT.includes(file)) continue;
    const text = readFileSync(join(ROOT, file), 'utf8');
    for (const name of new Set([...text.matchAll(NAMED)].map((match) => match[2] ?? match[3] ?? match[4] ?? '')))
      places.set(name, [...(places.get(name) ?? []), file]);
  }
  expect(places.get('TEMPER_ENGINE_KEY')).toEqual(['core/contract/wire-constants.ts']);
  expect([...places].filter(([, where]) => where.length > 1)).toEqual([]);
});
