/** Code that pages show compiles, as a user's would: each block is a module of its own, whole. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { blocksOf, isTypeScript, PAGES, ROOT, SDK_PAGES, type Block } from './markdown.ts';

const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
/** All of the product is checked with them, on a machine that may be busy. */
const TIMEOUT_MS = 300_000;

const pages = PAGES.filter((page) => !SDK_PAGES.includes(page));
const blocks = pages.flatMap(blocksOf).filter(isTypeScript);
const wrongCode = "import { defineAgent } from 'temper-rl';\ndefineAgent(1);\n";
const wrong: Block = { page: 'docs/wrong.md', line: 7, info: 'ts', code: wrongCode };
let errors: string[] = [];

beforeAll(async () => {
  errors = (await compile([...blocks, wrong])).split('\n').filter((line) => line.includes('error TS'));
}, TIMEOUT_MS);

test('each block of TypeScript in README, docs/ and the examples compiles', () => {
  expect(blocks.map(({ page }) => page)).toContain('README.md');
  expect(errors.filter((line) => !line.startsWith(wrong.page))).toEqual([]);
});

test('a block that does not compile is named by its page and line', () => {
  expect(errors.find((line) => line.startsWith(wrong.page))).toMatch(/^docs\/wrong\.md\(8,13\): error TS\d+: /);
});

/** The output of tsc, with the place in a page instead of a file's name. */
async function compile(all: readonly Block[]): Promise<string> {
  // Below the checkout, where `temper-rl` means this package, and out of git's sight.
  mkdirSync(join(ROOT, '.temper'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.temper', 'docs-'));
  try {
    for (const block of all) writeFileSync(join(folder, fileOf(block)), atItsLine(block));
    const include = ['*.ts', '../../workers/*.d.ts'];
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include }));
    const said = await outputOf(process.execPath, [TSC, '-p', folder, '--pretty', 'false'], folder);
    return all.reduce((text, block) => text.replaceAll(fileOf(block), block.page), said);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const fileOf = ({ page, line }: Block) => `${page.replaceAll('/', '-')}-${line}.ts`;
/** So that tsc's line numbers are those of the page. */
const atItsLine = ({ line, code }: Block) => '\n'.repeat(line - 1) + code;

const outputOf = (file: string, args: string[], cwd: string) =>
  new Promise<string>((resolve) => execFile(file, args, { cwd }, (_, stdout, stderr) => resolve(stdout + stderr)));
