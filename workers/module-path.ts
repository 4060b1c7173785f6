/** Starts modules of this package in processes of their own: TypeScript by tsx here, JavaScript once compiled. */
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';

const isSource = import.meta.url.endsWith('.ts');

/** `name` is relative to workers/, without its ending. */
export function modulePath(name: string): string {
  return fileURLToPath(new URL(`${name}${isSource ? '.ts' : '.js'}`, import.meta.url));
}

export function nodeFlags(): string[] {
  return isSource ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href] : [];
}
