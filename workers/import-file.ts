/** A person's TypeScript file as a value: an agent, or the configuration. */
import { pathToFileURL } from 'node:url';
import { tsImport } from 'tsx/esm/api';

import { TemperError } from '../core/failures.ts';

/**
 * Its default export, undefined where it has none. Imported apart from this package's own modules: a changed file is
 * read anew, and its errors name its lines.
 */
export async function importDefault(path: string): Promise<unknown> {
  if (path.includes('?')) {
    const rule = 'a TypeScript file must have a path without "?", because its loader reads what follows as a query';
    throw new TemperError('BadConfig', `${rule}, got ${path}; rename the folder`);
  }
  const module = (await tsImport(pathToFileURL(path).href, import.meta.url)) as { default?: unknown };
  const exported = module.default;
  // tsx hands a CommonJS-shaped module over with its exports one deeper.
  return typeof exported === 'object' && exported !== null && 'default' in exported ? exported.default : exported;
}
