/** Rules for every source file that no linter knows. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PRODUCT = [
  'core',
  'store',
  'play',
  'outbound',
  'views',
  'browser',
  'sdk',
  'workflows',
  'activities',
  'workers',
  'cli',
  'gpu-worker/temper_gpu',
];
/** A whole string, a member or a key: words of a message may name a variable anywhere. */
const NAMED = /(['"])(TEMPER_[A-Z_]+)\1|\.(TEMPER_[A-Z_]+)|\b(TEMPER_[A-Z_]+):/g;
/** It registers tsx, so it can import no TypeScript. Python's constants are generated. */
const EXEMPT = ['workers/typescript.js', 'gpu-worker/temper_gpu/contract.py'];

function textOf(folders: readonly string[], ending: RegExp): Map<string, string> {
  const list = ['ls-files', '-co', '--exclude-standard', ...folders];
  const files = execFileSync('git', list, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const chosen = files.filter((name) => ending.test(name) && existsSync(join(ROOT, name)));
  return new Map(chosen.map((name) => [name, readFileSync(join(ROOT, name), 'utf8')]));
}

test('no variable of the environment is named in the code of two files', () => {
  const places = new Map<string, string[]>();
  for (const [file, text] of textOf(PRODUCT, /\.(ts|js|py)$/)) {
    if (EXEMPT.includes(file)) continue;
    for (const name of new Set([...text.matchAll(NAMED)].map((match) => match[2] ?? match[3] ?? match[4] ?? '')))
      places.set(name, [...(places.get(name) ?? []), file]);
  }
  expect(places.get('TEMPER_ENGINE_KEY')).toEqual(['core/wire-constants.ts']);
  expect([...places].filter(([, where]) => where.length > 1)).toEqual([]);
});

test('members of classes are private by #, which holds when the program runs', () => {
  const byKeyword = [...textOf(['.'], /\.ts$/)].flatMap(([file, text]) =>
    // A constructor has no other way.
    [...text.matchAll(/^\s+private (?!constructor\b).*$/gm)].map(([line]) => `${file}: ${line.trim()}`),
  );
  expect(byKeyword).toEqual([]);
});

const DECLARED = /^export (?:abstract )?(?:async )?(?:function|const|class|interface|type) (\w+)/gm;

test('an exported name stands for one thing', () => {
  const places = new Map<string, Set<string>>();
  for (const [file, text] of textOf(PRODUCT, /\.ts$/))
    for (const [, name = ''] of text.matchAll(DECLARED)) places.set(name, (places.get(name) ?? new Set()).add(file));
  expect([...(places.get('trainRun') ?? [])]).toEqual(['workflows/train-run.ts']);
  expect([...places].filter(([, where]) => where.size > 1)).toEqual([]);
});

/** A comment names its subject first; these words begin with something else. */
const SUBJECTLESS = '(Of|By|As|What|Who|Where)\\b.*';
test.each([
  ['TypeScript', /\.(ts|js|mjs)$/, new RegExp(`(?:/\\*\\*?[\\s*]+|//\\s+)${SUBJECTLESS}`, 'g')],
  ['Python', /\.py$/, new RegExp(`(?:"""\\s*|# +)${SUBJECTLESS}`, 'g')],
] as const)('a comment in %s begins with its subject', (_, files, start) => {
  const found = [...textOf([...PRODUCT, 'test', 'bench', 'examples'], files)].flatMap(([file, text]) =>
    [...text.matchAll(start)].map(([comment]) => `${file}: ${comment}`),
  );
  expect(found).toEqual([]);
});
