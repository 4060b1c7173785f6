/** Script and style of a page: an installed package has them; in a clone they are made from the sources. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

export interface PageFiles {
  readonly js: string;
  readonly css: string;
}

const BROWSER = new URL('../../browser/', import.meta.url);

export async function readPageFiles(name: 'ui' | 'report'): Promise<PageFiles> {
  const built = new URL(`${name}.js`, BROWSER);
  if (existsSync(built)) {
    const [js, css] = await Promise.all([built, new URL(`${name}.css`, BROWSER)].map((file) => readFile(file, 'utf8')));
    return { js: js!, css: css! };
  }
  const files = made.get(name) ?? makePageFiles(name);
  made.set(name, files);
  return files;
}

/** Once in a process: who changes a page starts its command anew. */
const made = new Map<string, Promise<PageFiles>>();

async function makePageFiles(name: 'ui' | 'report'): Promise<PageFiles> {
  // Imported by a computed name: the package has neither this file nor esbuild.
  const { bundlePage } = (await import(new URL('bundle.ts', BROWSER).href)) as {
    readonly bundlePage: (page: 'ui' | 'report') => Promise<PageFiles>;
  };
  return bundlePage(name);
}
