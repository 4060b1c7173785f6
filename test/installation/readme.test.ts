/** Each command of README, tried with the packed package. The two set-up lines, which need a clone, are what CI itself runs. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import { blocksOf } from '../docs/markdown.ts';
import { ProjectFolder, linesOf, succeed } from '../stack.ts';
import { AGENTS, SCRIPTS, titleOf } from './pages.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(fileURLToPath(new URL(path, ROOT)), 'utf8');
const SETUP = ['npm ci && npm start', 'npm ci && npm test'];
const RUNNABLE = /^npx temper /;

/** Without comments, continued lines joined. */
const commands = blocksOf('README.md')
  .flatMap(({ info, code }) => (info === 'sh' ? linesOf(code.replaceAll(/\\\n\s*/g, ' ')) : []))
  .map((line) => line.replace(/(?:^|\s+)#.*$/, '').trim())
  .filter((line) => line !== '');

test('README has exactly two set-up lines, and nothing that is not run here', () => {
  expect(commands.filter((command) => !RUNNABLE.test(command))).toEqual(SETUP);
});

test('what `npm start` and `npm test` run exists', () => {
  const { scripts: npm } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  expect(npm['start']).toMatch(/^node cli\/temper\.js train examples\/tic-tac-toe\/agent\.ts --run demo /);
  expect(npm['test']).toBeDefined();
});

test('a page shows whole agents, whole scripts and configurations, so that each of them can be run', () => {
  expect(AGENTS.map(({ page }) => page)).toContain('README.md');
  for (const block of SCRIPTS) expect(block.code, titleOf(block)).toMatch(/^(await|const (?:\w+|\{.*\}) = await) /m);
});

const { folder, env } = inject('installation');
const project = new ProjectFolder(folder, { env });

test.each(commands.filter((command) => RUNNABLE.test(command)))('README: %s', async (command) => {
  // A training's first step, as all of them take minutes. The run that later lines ask about is `demo`, which is here
  // another file's.
  const line = command.replace(/--steps \d+/, '--steps 1 --run demo').replaceAll(/\bdemo\b/g, 'readme');
  const stdout = await succeed(project.run('sh', '-c', line));
  expect(stdout.trim()).not.toBe('');
});
