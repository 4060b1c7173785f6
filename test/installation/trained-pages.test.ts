/**
 * What pages show, each trained for a step or run as a script by the packed package, the examples on other SDKs by the line of
 * their pages, and the smallest example to its end. On each landing `scripted.test.ts` plays the same agents once.
 */
import { readFileSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import { until } from '../crash/project.ts';
import { blocksOf } from '../docs/markdown.ts';
import { ProjectFolder } from '../e2e/project-folder.ts';
import { SMALL, succeed, TEMPER } from './installation.ts';
import { AGENTS, fileOf, isAwaited, nameOf, SCRIPTS, SERVED_PAGE, titleOf } from './pages.ts';

const { folder, env } = inject('installation');
const project = new ProjectFolder(folder, { env });

const titled = (blocks: typeof AGENTS) => blocks.map((block) => ({ title: titleOf(block), block }));

test.each(titled(AGENTS.filter((block) => !isAwaited(block))))('the agent at $title', async ({ block }) => {
  const model = /\b(?:toolLoop|runTools)\(/.test(block.code) ? 'pocket-tools' : 'pocket';
  const line = ['train', fileOf(block), '--run', nameOf(block), '--base-model', model, '--steps', '1', ...SMALL];
  await succeed(project.run(TEMPER, ...line, '--max-tokens', '16'));
  const state = readFileSync(project.path('store', 'runs', nameOf(block), 'state.json'), 'utf8');
  expect(JSON.parse(state)).toMatchObject({ state: 'completed', step: 1, evalAfter: { failed: 0 } });
  const [step] = project.lines(`store/runs/${nameOf(block)}/steps/0.0.jsonl`);
  expect(step).toMatchObject({ step: 1, failedAttempts: 0 });
});

test.each(titled(AGENTS.filter(isAwaited)))('the agent at $title', async ({ block }) => {
  const line = ['try', fileOf(block), '--model', 'pocket', '--scenarios', '1', '--max-tokens', '16'];
  expect((await succeed(project.run(TEMPER, ...line))).stdout).toContain('=> reward');
});

test.each(titled(SCRIPTS.filter(({ page }) => page !== SERVED_PAGE)))('the script at $title', async ({ block }) => {
  const command = project.start('node', '--import', 'temper-rl/typescript', fileOf(block));
  let isOver = false;
  const ended = command.ended.finally(() => (isOver = true));
  await until('its first step is told', () => isOver || /^step 1\b/m.test(command.stdout()), 300_000);
  if (!isOver) return command.interrupt();
  expect((await succeed(ended)).stdout.trim()).not.toBe('');
});

/** The first line of the page that begins with `npx temper train`. */
function trainingOn(page: string): string {
  const lines = blocksOf(page).flatMap(({ code }) => code.replaceAll(/\\\n\s*/g, ' ').split('\n'));
  return lines.find((line) => line.startsWith('npx temper train '))!;
}

test.each(['ai-sdk', 'langgraph', 'anthropic-sdk'])('the line of its page trains %s', async (example) => {
  const line = trainingOn(`examples/${example}/README.md`);
  const small = `${line} --run example-${example} --steps 2 ${SMALL.join(' ')}`;
  expect((await succeed(project.run('sh', '-c', small))).stdout).toMatch(/^step +2\/2 /m);
});

test('the smallest example learns what it was not trained on: held-out products are answered far better', async () => {
  await succeed(project.run('sh', '-c', trainingOn('examples/multiplication/README.md')));
  const { stdout } = await succeed(project.run(TEMPER, 'show', 'multiplication', '--json'));
  const { evalBefore, evalAfter } = JSON.parse(stdout);
  console.log(`exact answers ${evalBefore.reward} → ${evalAfter.reward}`);
  expect(evalBefore.failed + evalAfter.failed).toBe(0);
  expect(evalBefore.reward).toBeLessThanOrEqual(0.5);
  expect(evalAfter.reward).toBeGreaterThanOrEqual(evalBefore.reward + 0.3);
});
