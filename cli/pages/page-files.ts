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

interface Additions {
  /** Elements of the head. */
  readonly head?: string;
  /** Scripts that must have run before the page's own. */
  readonly scripts?: string;
}

/** The document that the script of `temper ui` draws into: of the server, and of an export. */
export function pageDocument({ head = '', scripts = '' }: Additions = {}): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${head}<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<title>Temper</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
</head>
<body>
<div id="app"></div>
<noscript><p>This page needs JavaScript.</p></noscript>
${scripts}<script src="page.js"></script>
</body>
</html>
`;
}
