/** Agents that pages show, each trained for a step. On each landing `scripted.test.ts` plays them once. */
import { readFileSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import { ProjectFolder, succeed } from '../stack.ts';
import { SMALL, TEMPER } from './installation.ts';
import { AGENTS, fileOf, isAwaited, nameOf, titled } from './pages.ts';

const { folder, env } = inject('installation');
const project = new ProjectFolder(folder, { env });

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
  expect(await succeed(project.run(TEMPER, ...line))).toContain('=> reward');
});
