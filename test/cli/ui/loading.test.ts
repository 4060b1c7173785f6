/** Packages that `temper ui` has in memory before anybody acts. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const UI = fileURLToPath(new URL('../../../cli/ui/ui.ts', import.meta.url));
/** `import … from` and `export … from` of values, and `import '…'`. */
const STATIC_IMPORT = /^(?:import|export)\s+(?!type\b)(?:[^'";]*?from\s+)?'([^']+)'/gms;

/** Packages that a file of ours loads, by what it imports, with all that its imports load. */
function packagesOf(entry: string): Set<string> {
  const files = new Set([entry]);
  const packages = new Set<string>();
  for (const file of files)
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(STATIC_IMPORT)) {
      if (name.startsWith('.')) files.add(resolve(dirname(file), name));
      else if (!name.startsWith('node:')) packages.add(name);
    }
  return packages;
}

test('pages are served without Temporal’s client, a compiler and clients of models in memory', () => {
  const loaded = packagesOf(UI);
  expect(
    [...loaded].filter((name) => /^(@temporalio\/(?!envconfig$)|openai|undici|tsx|esbuild|@aws-sdk)/.test(name)),
  ).toEqual([]);
  expect(loaded).toContain('zod');
});
