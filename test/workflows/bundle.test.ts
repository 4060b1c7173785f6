import { readFile } from 'node:fs/promises';

import { expect, inject, test } from 'vitest';

test('the workflow bundle holds neither zod nor openai nor Node', async () => {
  const code = await readFile(inject('workflowBundle'), 'utf8');
  const modules = [...code.matchAll(/^\/\*{3}\/ "([^"]+)"/gm)].map(([, name]) => name ?? '');
  expect(modules).toContain('./workflows/train-run.ts');
  const foreign = modules.filter((name) =>
    /node_modules\/(zod|openai|pino|undici|tsx)\/|^node:|core\/contract\/(?!failures|schema-defaults|wire-constants)/.test(
      name,
    ),
  );
  expect(foreign).toEqual([]);
});
