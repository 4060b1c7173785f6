/** Script and style of a page: an installed package has them; in a clone they are made from the sources. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { htmlText, markup, type Html } from './html.ts';

export interface PageFiles {
  readonly js: string;
  readonly css: string;
}

type PageName = 'ui' | 'review';

const BROWSER = new URL('../../browser/', import.meta.url);

export async function readPageFiles(name: PageName): Promise<PageFiles> {
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

async function makePageFiles(name: PageName): Promise<PageFiles> {
  // Imported by a computed name: the package has neither this file nor esbuild.
  const { bundlePage } = (await import(new URL('bundle.ts', BROWSER).href)) as {
    readonly bundlePage: (page: PageName) => Promise<PageFiles>;
  };
  return bundlePage(name);
}

interface DocumentParts {
  readonly title?: string;
  /** Elements of the head: what it may load, and its style. */
  readonly head: Html;
  /** Answers, and the page's own script. */
  readonly scripts: Html;
}

/** Style and script as files beside the document. */
export const STYLE_LINK = markup`<link rel="stylesheet" href="page.css">`;
export const SCRIPT_LINK = markup`<script src="page.js"></script>`;

/** The document that the script of `temper ui` draws into: of the server, of a site, and of a single file. */
export function pageDocument({ title = 'Temper', head, scripts }: DocumentParts): string {
  return htmlText(markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<title>${title}</title>
<link rel="icon" href="data:,">
${head}
</head>
<body>
<div id="app"></div>
<noscript><p>This page needs JavaScript.</p></noscript>
${scripts}
</body>
</html>
`);
}
