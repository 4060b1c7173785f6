/** Imports between folders have no cycle, type imports included: you can read a folder without the folders that use it. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIST = 'ls-files -co --exclude-standard core store play sdk workflows activities workers cli';
/** `import … from`, `export … from`, `import '…'` and `import('…')`, of a file of ours. */
const RELATIVE_IMPORT = /(?:\bfrom\s+|\bimport\s*\(?\s*)'(\.{1,2}\/[^'\n]+)'/g;

/** By folder: the folders that its own files import, without those below it. */
function foldersImports(): Map<string, Set<string>> {
  const files = execFileSync('git', LIST.split(' '), { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const imports = new Map<string, Set<string>>();
  for (const file of files.filter((name) => /\.[jt]s$/.test(name))) {
    const folder = dirname(file);
    const found = imports.get(folder) ?? new Set();
    imports.set(folder, found);
    for (const [, specifier = ''] of readFileSync(join(ROOT, file), 'utf8').matchAll(RELATIVE_IMPORT)) {
      const target = dirname(normalize(join(folder, specifier)));
      if (target !== folder) found.add(target);
    }
  }
  return imports;
}

/** Every folder that imports itself by way of others. */
function inCycles(imports: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return [...imports.keys()].filter((folder) => {
    const reached = new Set(imports.get(folder));
    for (const next of reached) for (const target of imports.get(next) ?? []) reached.add(target);
    return reached.has(folder);
  });
}

test('no folder imports itself by way of others', () => {
  const imports = foldersImports();
  expect(imports.get('play/recorder')).toContain('play/connections');
  expect(inCycles(imports)).toEqual([]);
});

test('a cycle over several folders is found', () => {
  const imports = new Map([
    ['a', new Set(['b'])],
    ['b', new Set(['b/c'])],
    ['b/c', new Set(['a', 'd'])],
    ['d', new Set<string>()],
  ]);
  expect(inCycles(imports)).toEqual(['a', 'b', 'b/c']);
});
