/** Examples, trained by the lines of their pages: those on other SDKs for two steps, the smallest one to its end. */
import { expect, inject, test } from 'vitest';
import { blocksOf } from '../docs/markdown.ts';
import { ProjectFolder, succeed } from '../stack.ts';
import { SMALL, TEMPER } from './installation.ts';

const { folder, env } = inject('installation');
const project = new ProjectFolder(folder, { env });

/** The first line of the page that trains this file. */
function trainingOn(page: string, file: string): string {
  const lines = blocksOf(page).flatMap(({ code }) => code.replaceAll(/\\\n\s*/g, ' ').split('\n'));
  return lines.find((line) => line.startsWith('npx temper train ') && line.includes(`/${file} `))!;
}

test.each(['ai-sdk', 'langgraph', 'anthropic'])('the line of its page trains email-search with %s', async (sdk) => {
  const line = trainingOn('examples/email-search/README.md', 'ai-sdk.ts').replace('ai-sdk.ts', `${sdk}.ts`);
  const small = `${line} --run example-${sdk} --steps 2 ${SMALL.join(' ')}`;
  expect(await succeed(project.run('sh', '-c', small))).toMatch(/^step +2\/2 /m);
});

test('the smallest example learns what it was not trained on: held-out products are answered far better', async () => {
  await succeed(project.run('sh', '-c', trainingOn('examples/multiplication/README.md', 'agent.ts')));
  const stdout = await succeed(project.run(TEMPER, 'show', 'multiplication', '--json'));
  const { evalBefore, evalAfter } = JSON.parse(stdout).state;
  console.log(`exact answers ${evalBefore.reward} → ${evalAfter.reward}`);
  expect(evalBefore.failed + evalAfter.failed).toBe(0);
  expect(evalBefore.reward).toBeLessThanOrEqual(0.5);
  expect(evalAfter.reward).toBeGreaterThanOrEqual(evalBefore.reward + 0.3);
});
