/** Modules that an agent's file loads with `temper-rl`: none starts processes, speaks to Temporal or is native. */
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Imports of values; `import('…')` is loaded later, where it is needed. */
const STATIC_IMPORT = /^(?:import|export) (?!type )([^;']*? from )?'([^']+)';/gm;
const TYPES_ALONE = /^\{(\s*type [^,}]+,?)+\s*\} from $/;

function packagesOf(entry: string): string[] {
  const files = new Set([entry]);
  const packages = new Set<string>();
  for (const file of files) {
    for (const [, names = '', specifier = ''] of readFileSync(join(ROOT, file), 'utf8').matchAll(STATIC_IMPORT)) {
      if (TYPES_ALONE.test(names)) continue;
      if (specifier.startsWith('.')) files.add(normalize(join(dirname(file), specifier)));
      else
        packages.add(
          specifier
            .split('/')
            .slice(0, specifier.startsWith('@') ? 2 : 1)
            .join('/'),
        );
    }
  }
  return [...packages].toSorted();
}

test('of packages, and of Node', () => {
  const packages = packagesOf('sdk/index.ts');
  expect(packages.filter((name) => !name.startsWith('node:'))).toEqual(['@noble/hashes', 'openai', 'p-limit', 'zod']);
  expect(packages).not.toContain('node:child_process');
  expect(packages).not.toContain('node:http');
});

test('what starts processes has entries of its own', () => {
  expect(packagesOf('sdk/mcp/mcp.ts').filter((name) => !name.startsWith('node:'))).toEqual(
    expect.not.arrayContaining(['@modelcontextprotocol/sdk']),
  );
  expect(packagesOf('sdk/mcp/mcp.ts')).toContain('node:child_process');
  expect(packagesOf('workers/local-backend/hold-stack.ts')).toEqual(
    expect.arrayContaining(['undici', 'node:child_process']),
  );
});
