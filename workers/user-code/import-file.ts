/** A person's file as a value: an agent, or the configuration, in TypeScript or JavaScript. */
import { pathToFileURL } from 'node:url';

import { badConfig } from '../../core/contract/failures.ts';

const TYPESCRIPT = /\.[cm]?tsx?$/;
/** No TypeScript module imports JavaScript here: in a clone, tsx would read the `agent.ts` beside an `agent.js` instead. */
const IMPORTER = 'data:text/javascript,export const load = (url) => import(url)';

/** Its default export, undefined where it has none. */
export async function importDefault(path: string): Promise<unknown> {
  const { default: exported } = await (TYPESCRIPT.test(path) ? importTypeScript(path) : importJavaScript(path));
  // CommonJS modules have their default export one level deeper.
  return typeof exported === 'object' && exported !== null && 'default' in exported ? exported.default : exported;
}

interface Module {
  readonly default?: unknown;
}

/** Apart from this package's own modules: a changed file is read anew, and its errors name its lines. */
async function importTypeScript(path: string): Promise<Module> {
  if (path.includes('?')) {
    const rule = 'a TypeScript file must have a path without "?", because its loader reads what follows as a query';
    throw badConfig(`${rule}, got ${path}; rename the folder`);
  }
  // Its compiler takes 20 MB, which a command that imports no TypeScript saves.
  const { tsImport } = await import('tsx/esm/api');
  return (await tsImport(pathToFileURL(path).href, import.meta.url)) as Module;
}

async function importJavaScript(path: string): Promise<Module> {
  const { load } = (await import(IMPORTER)) as { load: (url: string) => Promise<Module> };
  return load(pathToFileURL(path).href);
}
