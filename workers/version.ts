import { readFileSync } from 'node:fs';

/** Of this package: what wrote a report, and what started a local stack. */
export function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
