/**
 * Everything that README and the pages tell people to type and to write, tried with the packed package in a folder: each
 * command of README, each agent and script of any page for a step, what can be done with a trained model, and the smallest
 * example's training to its end. The two set-up lines, which need a clone, are what CI itself runs.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Command, linesOf, ProjectFolder } from '../stack.ts';
import { until } from '../until.ts';
import { freePort } from '../free-port.ts';
import { SMALL, TEMPER } from './installation.ts';
import { AGENTS, fileOf, isAwaited, nameOf, SCRIPTS, titleOf } from './pages.ts';
import { SERVE_KEY, startServing, testUse } from './use-what-you-trained.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(fileURLToPath(new URL(path, ROOT)), 'utf8');
const SETUP = ['npm ci && npm start', 'npm ci && npm test'];
const RUNNABLE = /^npx temper /;

/** Lines of the blocks of a language, without comments, continued lines joined. */
function commandsIn(markdown: string, language = 'sh'): string[] {
  const fenced = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms');
  const blocks = [...markdown.matchAll(fenced)].map(([, block = '']) => block);
  const lines = blocks.flatMap((block) => linesOf(block.replaceAll(/\\\n\s*/g, ' ')));
  return lines.map((line) => line.replace(/(?:^|\s+)#.*$/, '').trim()).filter((line) => line !== '');
}

const commands = commandsIn(read('README.md'));
test('README has exactly two set-up lines, and nothing that is not run here', () => {
  expect(commands.filter((command) => !RUNNABLE.test(command))).toEqual(SETUP);
});

test('CI runs the test line of README and nothing else', () => {
  const lines = linesOf(read('.ci/run')).filter((line) => !/^#|^set |^cd /.test(line));
  expect(lines.join(' && ')).toBe('npm ci && npm test');
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

describe('in an installation', async () => {
  const { folder, env } = inject('installation');
  const project = new ProjectFolder(folder, { env: { ...env, TEMPER_SERVE_KEY: SERVE_KEY } });
  const port = await freePort();
  let serving: Command;

  beforeAll(async () => {
    const demo = ['train', 'examples/tic-tac-toe/agent.ts', '--run', 'demo', '--base-model', 'pocket', '--steps', '2'];
    const { code, stdout, stderr } = await project.run(TEMPER, ...demo, ...SMALL);
    expect(code, stdout + stderr).toBe(0);
    serving = await startServing(project, port);
  });

  // The test that ends `temper serve` may not be among those that run.
  afterAll(() => project.endCommands());

  test.each(commands.filter((command) => RUNNABLE.test(command)))('README: %s', async (command) => {
    // A training's first steps: all of them take minutes.
    const { code, stdout, stderr } = await project.run('sh', '-c', command.replace(/--steps \d+/, '--steps 2'));
    expect(code, stdout + stderr).toBe(0);
    expect(stdout.trim()).not.toBe('');
  });

  // README's own agent is `agent.ts`, which its command trains.
  const others = AGENTS.filter((block) => block.page !== 'README.md' && !isAwaited(block));
  test.each(others.map((block) => ({ title: titleOf(block), block })))('the agent at $title', async ({ block }) => {
    const model = /\b(?:toolLoop|runTools)\(/.test(block.code) ? 'pocket-tools' : 'pocket';
    const line = ['train', fileOf(block), '--run', nameOf(block), '--base-model', model, '--steps', '1', ...SMALL];
    const { code, stdout, stderr } = await project.run(TEMPER, ...line, '--max-tokens', '16');
    expect(code, stdout + stderr).toBe(0);
    const state = readFileSync(project.path('store', 'runs', nameOf(block), 'state.json'), 'utf8');
    expect(JSON.parse(state)).toMatchObject({ state: 'completed', step: 1, evalAfter: { failed: 0 } });
    const [step] = project.lines(`store/runs/${nameOf(block)}/steps/0.0.jsonl`);
    expect(step).toMatchObject({ step: 1, failedAttempts: 0 });
  });

  const awaited = AGENTS.filter(isAwaited);
  test.each(awaited.map((block) => ({ title: titleOf(block), block })))('the agent at $title', async ({ block }) => {
    const line = ['try', fileOf(block), '--model', 'pocket', '--scenarios', '1', '--max-tokens', '16'];
    const { code, stdout, stderr } = await project.run(TEMPER, ...line);
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).toContain('=> reward');
  });

  test.each(SCRIPTS.map((block) => ({ title: titleOf(block), block })))('the script at $title', async ({ block }) => {
    const command = project.start('node', '--import', 'temper-rl/typescript', fileOf(block));
    let isOver = false;
    const ended = command.ended.finally(() => (isOver = true));
    await until('its first step is told', () => isOver || /^step 1\b/m.test(command.stdout()), 300_000);
    if (!isOver) return command.interrupt();
    const { code, stdout, stderr } = await ended;
    expect(code, stdout + stderr).toBe(0);
    expect(stdout.trim()).not.toBe('');
  });

  // After the scripts that ask the server: its last test ends it.
  testUse({ project, serving: () => serving, port });

  test('the smallest example learns what it was not trained on: held-out products are answered far better', async () => {
    const [line = ''] = commandsIn(read('examples/multiplication/README.md'), '');
    expect(line).toMatch(/^npx temper train examples\/multiplication\/agent\.ts /);
    const { code, stdout, stderr } = await project.run('sh', '-c', line);
    expect(code, stdout + stderr).toBe(0);
    const { stdout: json } = await project.run(TEMPER, 'show', 'multiplication', '--json');
    const { evalBefore, evalAfter } = JSON.parse(json);
    console.log(`exact answers ${evalBefore.reward} → ${evalAfter.reward}`);
    expect(evalBefore.failed + evalAfter.failed).toBe(0);
    expect(evalBefore.reward).toBeLessThanOrEqual(0.5);
    expect(evalAfter.reward).toBeGreaterThanOrEqual(evalBefore.reward + 0.3);
  });
});
