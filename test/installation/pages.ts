/** The agents, scripts and configurations that README and the pages show, as files of a project. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf, isTypeScript, PAGES, ROOT, SDK_PAGES, type Block } from '../docs/markdown.ts';

const BLOCKS = PAGES.flatMap(blocksOf).filter(isTypeScript);
const isAgent = ({ code }: Block) => code.includes('export default defineAgent(');
/** Its program is in the project's folder, and both are played in `project/scripted/programs.ts`. */
const isProgram = ({ code }: Block) => /\b(?:command|gateway)\(/.test(code);
/** Played in `project/scripted/pages.ts`, and compiled with `project/frameworks`. */
const isOfSdk = ({ page }: Block) => SDK_PAGES.includes(page);
/** Their data are elsewhere: files and the hub are read in `test/play/sources`. */
const isOfSources = ({ page }: Block) => page === 'docs/scenarios.md';
const isConfig = ({ code }: Block) => code.includes('export default defineConfig(');
/** Parts for an agent, such as resources that need Docker: compiled alone. */
const isPart = (block: Block) => !isAgent(block) && !isConfig(block) && /^export /m.test(block.code);

/** Its script asks the server that the page starts. */
export const SERVED_PAGE = 'docs/use-what-you-trained.md';

/** Rewarded by people: a run of it waits for them. */
export const isAwaited = ({ code }: Block) => /\breward: (?:external|review)\(/.test(code);

export const AGENTS = BLOCKS.filter(
  (block) => isAgent(block) && ![isProgram, isOfSdk, isOfSources].some((isOther) => isOther(block)),
);
export const SCRIPTS = BLOCKS.filter((block) => ![isAgent, isConfig, isPart].some((isOther) => isOther(block)));

export const nameOf = ({ page, line }: Block) =>
  `${page.toLowerCase().replace(/\.md$/, '').replaceAll('/', '-')}-${line}`;
export const titleOf = ({ page, line }: Block) => `${page}:${line}`;
export const titled = (blocks: readonly Block[]) => blocks.map((block) => ({ title: titleOf(block), block }));

/** An agent is a module of the project; a script awaits at its top level, whatever the project's package.json says. */
export function fileOf(block: Block): string {
  const folder = isOfSdk(block) ? 'sdks' : 'pages';
  return `${folder}/${nameOf(block)}.${[isAgent, isConfig, isPart].some((isModule) => isModule(block)) ? 'ts' : 'mts'}`;
}

/** The project has another version of it by this name. */
const OTHER_VERSIONS: Readonly<Record<string, readonly [string, string]>> = {
  'docs/sdks/mastra.md': ['@ai-sdk/openai-compatible', 'ai-sdk-5-openai-compatible'],
  'docs/sdks/openai-agents.md': ['openai', '../node_modules/@openai/agents-openai/node_modules/openai/index.mjs'],
};

function codeOf({ page, code }: Block): string {
  const [name, other] = OTHER_VERSIONS[page] ?? ['', ''];
  return code.replaceAll(`from '${name}'`, `from '${other}'`);
}

/** The page on MCP makes tools of an SDK's form as one constant; it becomes a function of `tools`. */
function writeMcpForms(folder: string): void {
  mkdirSync(join(folder, 'mcp'));
  for (const { info, code } of blocksOf('docs/mcp.md')) {
    const name = /^const (\w+) = /m.exec(code)?.[1];
    if (info !== 'js' || name === undefined) continue;
    writeFileSync(
      join(folder, 'mcp', `${name}.js`),
      code.replace(/^const (\w+) = /m, 'export const $1 = (tools) =>\n  '),
    );
  }
}

/** Templates of `temper init` whose SDKs the product lacks. The others have tests beside them. */
const SDK_TEMPLATES = ['ai-sdk', 'langgraph'];

/** README's own agent is `agent.ts`, which its command trains. */
export function writePages(folder: string): void {
  for (const name of ['pages', 'sdks']) mkdirSync(join(folder, name));
  for (const block of BLOCKS) writeFileSync(join(folder, fileOf(block)), codeOf(block));
  writeFileSync(join(folder, 'agent.ts'), AGENTS.find(({ page }) => page === 'README.md')!.code);
  for (const name of SDK_TEMPLATES)
    cpSync(join(ROOT, 'cli/init/templates', name, 'agent.ts'), join(folder, `templates/${name}.ts`));
  // Played in `project/scripted/pages.ts`.
  const played = [...AGENTS.map(fileOf), ...SDK_TEMPLATES.map((name) => `templates/${name}.ts`)];
  writeFileSync(join(folder, 'agents.json'), JSON.stringify(played));
  writeMcpForms(folder);
  const programs = blocksOf('docs/programs.md');
  const program = (language: string) => programs.find(({ info }) => info === language)!.code;
  writeFileSync(join(folder, 'agent.py'), program('python'));
  writeFileSync(join(folder, 'agent.sh'), program('sh'));
}
