/** Imports between folders, type imports included, follow AGENTS.md's table and have no cycle. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIST =
  'ls-files -co --exclude-standard core store play outbound views sdk workflows activities workers operations cli';
/** `import … from`, `export … from`, `import '…'` and `import('…')`, of a file of ours. */
const RELATIVE_IMPORT = /(?:\bfrom\s+|\bimport\s*\(?\s*)'(\.{1,2}\/[^'\n]+)'/g;

const BELOW_SDK = ['core', 'store', 'play'];
/** Imports that a folder may have; how much of each, AGENTS.md says. Lint sees no `import('…')`, this does. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  store: ['core'],
  play: ['core', 'store'],
  outbound: ['core', 'store'],
  views: ['core', 'store'],
  sdk: [...BELOW_SDK, 'workflows'],
  workflows: ['core'],
  activities: [...BELOW_SDK, 'outbound'],
  workers: [...BELOW_SDK, 'outbound', 'workflows', 'activities'],
  'workers/local-backend': [...BELOW_SDK, 'sdk', 'workflows'],
  'workers/workflow-agents': [...BELOW_SDK, 'sdk'],
  operations: [...BELOW_SDK, 'outbound', 'views', 'workflows', 'workers'],
  cli: [...BELOW_SDK, 'outbound', 'views', 'browser', 'workflows', 'workers', 'operations'],
  'cli/scenarios': [...BELOW_SDK, 'sdk', 'workers', 'operations'],
};

/** Folders that a folder's own files import, without those below it. */
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

const topOf = (folder: string): string => folder.split('/')[0]!;

/** `folder > import` for each import that the table does not have. */
function notAllowed(imports: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return [...imports].flatMap(([folder, targets]) => {
    const allowed = [topOf(folder), ...(MAY_IMPORT[folder] ?? MAY_IMPORT[topOf(folder)] ?? [])];
    return [...targets].filter((target) => !allowed.includes(topOf(target))).map((target) => `${folder} > ${target}`);
  });
}

test('a folder imports only what stands below it', () => {
  expect(notAllowed(foldersImports())).toEqual([]);
  const imports = new Map([
    ['sdk/loop', new Set(['sdk', 'workers'])],
    ['workers/worker', new Set(['sdk/loop'])],
    ['workers/local-backend', new Set(['sdk/loop', 'workers'])],
  ]);
  expect(notAllowed(imports)).toEqual(['sdk/loop > workers', 'workers/worker > sdk/loop']);
});

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
