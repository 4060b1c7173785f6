/** The agents, scripts and configurations that README and the pages show, as files of a project. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf, isTypeScript, PAGES, type Block } from '../docs/markdown.ts';

const BLOCKS = PAGES.flatMap(blocksOf).filter(isTypeScript);
const isAgent = ({ code }: Block) => code.includes('export default defineAgent(');
/** Its program stands beside it, and needs what is not installed here: test/crash/program.test.ts and test/play have their own. */
const isProgram = ({ code }: Block) => /\b(?:command|endpoint)\(/.test(code);
const isConfig = ({ code }: Block) => code.includes('export default defineConfig(');

export const AGENTS = BLOCKS.filter((block) => isAgent(block) && !isProgram(block));
export const SCRIPTS = BLOCKS.filter((block) => !isAgent(block) && !isConfig(block));

export const nameOf = ({ page, line }: Block) =>
  `${page.toLowerCase().replace(/\.md$/, '').replaceAll('/', '-')}-${line}`;
export const titleOf = ({ page, line }: Block) => `${page}:${line}`;

/** An agent is a module of the project; a script awaits at its top level, whatever the project's package.json says. */
export function fileOf(block: Block): string {
  return `pages/${nameOf(block)}.${isAgent(block) || isConfig(block) ? 'ts' : 'mts'}`;
}

/** README's own agent is `agent.ts`, which its command trains. */
export function writePages(folder: string): void {
  mkdirSync(join(folder, 'pages'));
  for (const block of BLOCKS) writeFileSync(join(folder, fileOf(block)), block.code);
  writeFileSync(join(folder, 'agent.ts'), AGENTS.find(({ page }) => page === 'README.md')!.code);
}
