/** Scripts that pages show, each run to its end, or until it has trained a step. */
import { expect, inject, test } from 'vitest';
import { ProjectFolder, succeed } from '../stack.ts';
import { until } from '../until.ts';
import { fileOf, SCRIPTS, SERVED_PAGE, titled } from './pages.ts';

const { folder, env } = inject('installation');
const project = new ProjectFolder(folder, { env });

test.each(titled(SCRIPTS.filter(({ page }) => page !== SERVED_PAGE)))('the script at $title', async ({ block }) => {
  const command = project.start('node', '--import', 'temper-rl/typescript', fileOf(block));
  let isOver = false;
  const ended = command.ended.finally(() => (isOver = true));
  await until('its first step is told', () => isOver || /^step 1\b/m.test(command.stdout()));
  if (!isOver) return command.interrupt();
  expect((await succeed(ended)).trim()).not.toBe('');
});
