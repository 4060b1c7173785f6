import { readFileSync } from 'node:fs';
import { basename, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Version of this package, recorded in reports and local stacks. */
export function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** What another project's package.json says of this package. No registry has it: a clone is named by the package that it builds. */
export function dependencyOnThis(): string {
  const root = resolve(fileURLToPath(new URL('..', import.meta.url)));
  if (root.split(sep).includes('node_modules')) return `^${version()}`;
  return `file:${basename(root) === 'dist' ? root : join(root, 'dist')}`;
}
