import { readFileSync } from 'node:fs';

/** Version of this package, recorded in reports and local stacks. */
export function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
