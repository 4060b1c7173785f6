/**
 * Makes the scripts and styles of Temper's pages, one of each for a page. `npm run build` writes them into the package; in
 * a clone they are made when a command needs them.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { parseGlossary } from './glossary.ts';

export interface Bundle {
  readonly js: string;
  readonly css: string;
  /** Folders of the npm packages that are part of it, relative to this folder, sorted. */
  readonly packages: readonly string[];
}

/** Of the pages of `temper ui` and of all that is exported, and of those of `temper review`. */
const BUNDLES = { ui: 'ui.tsx', review: 'review.ts' } as const;
export type BundleName = keyof typeof BUNDLES;
export const BUNDLE_NAMES = ['ui', 'review'] as const satisfies readonly BundleName[];

/**
 * uPlot asks for the browser's language when it is loaded: on a system without one, Chromium's is `en-US@posix`, which
 * JavaScript refuses.
 */
const VALID_LANGUAGE = `try { Intl.getCanonicalLocales(navigator.language); }
catch { Object.defineProperty(navigator, 'language', { value: 'en-US' }); }`;

export async function bundlePage(name: BundleName): Promise<Bundle> {
  const glossary = await readFile(join(import.meta.dirname, '../docs/glossary.md'), 'utf8');
  const { outputFiles, metafile } = await build({
    absWorkingDir: import.meta.dirname,
    entryPoints: { script: BUNDLES[name], style: `${name}.css` },
    outdir: 'out',
    write: false,
    metafile: true,
    bundle: true,
    minify: true,
    // Not a module: browsers load none from a file.
    format: 'iife',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    charset: 'utf8',
    legalComments: 'none',
    define: { GLOSSARY: JSON.stringify(parseGlossary(glossary)) },
    banner: { js: VALID_LANGUAGE },
    logLevel: 'error',
  });
  const textOf = (ending: string): string => outputFiles.find(({ path }) => path.endsWith(ending))?.text ?? '';
  return { js: textOf('.js'), css: textOf('.css'), packages: packagesOf(Object.keys(metafile.inputs)) };
}

/** `../node_modules/preact/dist/preact.mjs` is of `../node_modules/preact`. */
function packagesOf(files: readonly string[]): string[] {
  const folders = files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  return [...new Set(folders)].toSorted();
}
