/** The page for one's own project, as it is typed: in a folder of the installation, so that it shares package and stack. */
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import timesTable from '../../cli/init/templates/plain/agent.ts';
import { replayAttempt } from '../../sdk/testing/index.ts';
import { blocksOf, ROOT } from '../docs/markdown.ts';
import { isNightly } from '../run/tier.ts';
import { ProjectFolder, linesOf, succeed } from '../stack.ts';
import { SMALL } from './installation.ts';

const { folder, home, env } = inject('installation');
const project = new ProjectFolder(folder, { env });

const typed = blocksOf('docs/your-own-project.md').flatMap(({ info, code }) => (info === 'sh' ? linesOf(code) : []));
const sh = (line: string) => succeed(project.run('sh', '-c', line));
const isPlayed = (line: string) => /^npx temper (try|train)\b/.test(line);

test('the page tells nothing to be typed that is not run here, but for the installation itself', () => {
  const install = ['npm ci && npm run build', 'mkdir my-agent', 'cd my-agent', 'npm install ../temper/dist'];
  expect(typed.filter((line) => !isPlayed(line))).toEqual([...install, 'npx temper init', 'npm install', 'npm test']);
});

test('a new project passes its own tests', async () => {
  await sh('npx temper init my-agent');
  const tested = join(home, 'my-agent');
  copyForVitest(join(folder, 'my-agent'), tested);
  await sh(`cd ${tested} && npm test`);
});

test('its agent is tried, trained, tried again from its checkpoint, and saved attempts are played again', async () => {
  for (const line of typed.filter(isPlayed)) {
    const named = line.replace(/ (try|train)\b/, ' $1 my-agent');
    const isTraining = line.includes('temper train');
    const small = `${named} --base-model pocket --steps 1 ${SMALL.join(' ')}`;
    const stdout = await sh(isTraining ? small : named);
    if (!isTraining) expect(stdout).toMatch(/^=> reward [01]\.000 · correct (true|false)$/m);
  }
  const replayed = await replayAttempt(timesTable, join(folder, 'attempts', '8-2x12-0.json'));
  expect(replayed).toMatchObject({ failure: null, changed: null, notAsked: [] });
});

// On each landing `scripted.test.ts` and the templates' own tests play them.
test.runIf(isNightly()).each([
  ['ai-sdk', 'pocket'],
  ['langgraph', 'pocket'],
  ['tools', 'pocket-tools'],
])('the template %s is played with the SDKs that it names', async (template, model) => {
  await sh(`npx temper init ${template} --template ${template}`);
  const stdout = await sh(`npx temper try ${template} --model ${model} --scenarios 1`);
  expect(stdout).toMatch(/^=> reward [01]\.000 · /m);
});

/** To a path without #, which vitest cannot have, and with links in place of the project's own `npm install`. */
function copyForVitest(from: string, to: string): void {
  cpSync(from, to, { recursive: true });
  const modules = join(to, 'node_modules');
  mkdirSync(join(modules, '.bin'), { recursive: true });
  symlinkSync(join(ROOT, 'dist'), join(modules, 'temper-rl'));
  symlinkSync(join(ROOT, 'node_modules/vitest'), join(modules, 'vitest'));
  symlinkSync('../vitest/vitest.mjs', join(modules, '.bin', 'vitest'));
}
