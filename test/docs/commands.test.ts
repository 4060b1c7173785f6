/** Lines that pages tell people to type: each command, flag and script exists. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { listCommands } from '../../cli/commands.ts';
import { findCommand } from '../../cli/main.ts';
import { parseCommandLine } from '../../cli/command-line/parse.ts';
import { generateDeploymentPage } from '../contract/generate-deploy-flags.ts';
import { generatePage } from '../contract/generate-flags.ts';
import { generateOperations } from '../contract/generate-operations.ts';
import { blocksOf, HISTORY, PAGES, readPage, ROOT } from './markdown.ts';

const COMMANDS = await listCommands();

/** `npx temper …` as a line of a block, perhaps behind a prompt, continued lines joined, without comment. */
function linesOf(page: string): string[] {
  const blocks = blocksOf(page).filter(({ info }) => info === '' || info === 'sh');
  const lines = blocks.flatMap(({ code }) => code.replaceAll(/\\\n\s*/g, ' ').split('\n'));
  return lines.flatMap((line) => /^(?:\$ )?npx temper (.*?)(?:\s+#.*)?$/.exec(line)?.[1] ?? []);
}

/** Words like a shell splits them, as far as pages need it. */
const wordsOf = (line: string) =>
  [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, single, double, bare]) => single ?? double ?? bare ?? '');

async function parse(line: string) {
  const [name = '', ...rest] = wordsOf(line);
  const { command, args } = await findCommand(name, rest);
  // A page that trains without a model has it from the project's configuration.
  const ofProject = name === 'train' ? ['--base-model', 'pocket'] : [];
  return parseCommandLine(command, [...ofProject, ...args]);
}

/** `temper …` in the middle of a text: what stands there may have gaps and names in capitals, but no unknown flag. */
const spansOf = (page: string) =>
  [...readPage(page).matchAll(/`(?:npx )?temper ([^`]*)`/g)].map(([, span = '']) => span.replaceAll('\\|', '|'));

describe.each(PAGES.filter((page) => linesOf(page).length > 0))('%s', (page) => {
  test.each(linesOf(page))('temper %s', async (line) => {
    await parse(line);
    for (const word of wordsOf(line).filter((each) => each.startsWith('examples/')))
      expect(existsSync(join(ROOT, word)), word).toBe(true);
  });
});

test.each(PAGES.filter((page) => !HISTORY.has(page) && spansOf(page).length > 0))(
  '%s names commands and flags that exist',
  (page) => {
    for (const span of spansOf(page)) {
      const [name = '', ...rest] = span.split(/[\s|]+/);
      const command = COMMANDS.find((each) => each.name === name);
      expect(command, `temper ${span}`).toBeDefined();
      const own = [command!, ...(command!.actions ?? [])].flatMap(({ flags }) => Object.keys(flags));
      const known = ['help', ...own];
      for (const flag of rest.flatMap((word) => /^\[?--([a-z0-9-]+)/.exec(word)?.[1] ?? []))
        expect(known, `temper ${span}`).toContain(flag);
    }
  },
);

describe('scripts', () => {
  /** `node --import SPECIFIER FILE`, in a block or in the middle of a text. */
  const lines = PAGES.flatMap((page) =>
    [...readPage(page).matchAll(/\bnode --import (\S+) ([^\s`]+)/g)].map(([, specifier, file]) => ({
      page,
      specifier,
      file,
    })),
  );

  test.each(lines)('$page starts $file with $specifier', ({ specifier, file }) => {
    expect(specifier).toBe('temper-rl/typescript');
    if (/^(?:examples|test)\//.test(file!)) expect(existsSync(join(ROOT, file!))).toBe(true);
  });

  test('run in a project whose folder has # and % in its name', () => {
    const project = mkdtempSync(join(tmpdir(), 'temper #1 %41 '));
    mkdirSync(join(project, 'node_modules'));
    symlinkSync(ROOT, join(project, 'node_modules', 'temper-rl'));
    writeFileSync(
      join(project, 'loop.mts'),
      "import { label } from 'temper-rl';\nconst type: string = typeof label;\nconsole.log(type);",
    );
    const args = ['--import', 'temper-rl/typescript', 'loop.mts'];
    expect(execFileSync(process.execPath, args, { cwd: project, encoding: 'utf8' })).toBe('function\n');
    rmSync(project, { recursive: true });
  });
});

test.each([
  ['docs/commands.md', 'train'],
  ['docs/commands.md', 'init'],
  ['docs/commands.md', 'scenarios'],
  ['docs/commands.md', 'try'],
  ['docs/commands.md', 'eval'],
])('%s lists every flag of temper %s', (page, name) => {
  const { flags } = COMMANDS.find((command) => command.name === name)!;
  const text = readPage(page);
  expect(Object.keys(flags).filter((flag) => !new RegExp(`^\\|.*\`--${flag}\\b`, 'm').test(text))).toEqual([]);
});

test('pages have the tables that the contract generates (else: npm run contract)', () => {
  expect(generateDeploymentPage()).toBe(readPage('docs/deployment.md'));
  expect(generateOperations(generatePage())).toBe(readPage('docs/commands.md'));
});

test.each([
  ['trian examples/tic-tac-toe/agent.ts', /unknown command trian/],
  ['train examples/tic-tac-toe/agent.ts --grop-size 8', /unknown flag --grop-size/],
  ["schedule create agent.ts --name nightly --corn '0 3 * * *'", /unknown flag --corn/],
  ['show', /RUN is missing/],
])('temper %s would be refused', async (line, reason) => {
  await expect(parse(line)).rejects.toThrow(reason);
});
