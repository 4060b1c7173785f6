/** Starts modules of this package in processes of their own: TypeScript by tsx here, JavaScript once compiled. */
import { fileURLToPath } from 'node:url';

const isSource = import.meta.url.endsWith('.ts');

/** `name` is relative to workers/, without its ending. */
export function modulePath(name: string): string {
  return fileURLToPath(new URL(`../${name}${isSource ? '.ts' : '.js'}`, import.meta.url));
}

export function nodeFlags(): string[] {
  return isSource ? ['--import', new URL('../typescript.js', import.meta.url).href] : [];
}
