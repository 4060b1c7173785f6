/** Scripts that pages show, each run to its end, or until it has trained a step. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, inject, test } from 'vitest';
import { ProjectFolder, succeed } from '../stack.ts';
import { until } from '../until.ts';
import { DEMO, SMALL, TEMPER } from './installation.ts';
import { fileOf, SCRIPTS, SERVED_PAGE, titled } from './pages.ts';

/** Its script steers a run `demo` that is running. */
const STEERED_PAGE = 'docs/steering.md';

const { folder, env } = inject('installation');
const project = new ProjectFolder(folder, { env });

const ALONE = SCRIPTS.filter(({ page }) => page !== SERVED_PAGE && page !== STEERED_PAGE);

afterAll(() => project.endCommands());

test.each(titled(ALONE))('the script at $title', async ({ block }) => {
  const command = project.start('node', '--import', 'temper-rl/typescript', fileOf(block));
  let isOver = false;
  const ended = command.ended.finally(() => (isOver = true));
  await until('its first step is told', () => isOver || /^step 1\b/m.test(command.stdout()));
  if (!isOver) return command.interrupt();
  expect((await succeed(ended)).trim()).not.toBe('');
});

test.each(titled(SCRIPTS.filter(({ page }) => page === STEERED_PAGE)))(
  'the script at $title pauses a run',
  async ({ block }) => {
    const longer = ['--run', 'steered', '--steps', '1000'];
    const training = project.start(TEMPER, ...DEMO, ...SMALL, ...longer);
    let isOver = false;
    void training.ended.finally(() => (isOver = true));
    await until('its first step is trained', () => isOver || /^step +1\//m.test(training.stdout()));
    const file = fileOf(block);
    writeFileSync(join(folder, file), block.code.replaceAll("'demo'", "'steered'"));
    await project.done('node', '--import', 'temper-rl/typescript', file);
    const state = async () =>
      (JSON.parse(await project.done(TEMPER, 'show', 'steered', '--json')) as { state: { state: string } }).state.state;
    await until('it pauses', async () => (await state()) === 'paused');
  },
);
