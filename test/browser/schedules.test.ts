/** Actions on what is no run: a checkpoint, a schedule. */
import { expect, test } from 'vitest';
import { writeUiStore } from '../../bench/ui/write-store.ts';
import type { ScheduleSummary } from '../../views/api/schedule-views.ts';
import { findViolations } from './axe.ts';
import { describePages, goTo } from './open-pages.ts';
import { json, result, takeActions } from './take-actions.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const folder = temporaryFolder();
await writeUiStore({ folder, run: 'demo', steps: 3, groups: 1, attempts: 4, turns: 2, blobBytes: 100 });

const SCHEDULE: ScheduleSummary = {
  name: 'nightly',
  agent: 'tic-tac-toe',
  baseModel: 'pocket',
  timing: 'every 1d',
  steps: 2,
  work: '2 steps each',
  waiting: null,
  state: 'paused',
  reason: 'the disk was full',
  nextTimes: [],
  lastRun: { run: 'nightly-1', state: 'failed' },
  begins: null,
  firings: 1,
  skipped: 0,
  missed: 0,
};

await describePages('actions on checkpoints and schedules', folder, ({ openApart }) => {
  test('a checkpoint can be promoted, and schedules have a page with their actions; each dialog stays when its button goes', async () => {
    const page = await openApart('/');
    const taken = await takeActions(page, (request) => {
      if (request.isConfirmed) schedule.state = 'active';
      return result(request, 'It is said what will happen.');
    });
    const schedule = { ...SCHEDULE };
    await page.route('**/api/schedules', (route) => json(route, [schedule]));
    await page.reload();
    await goTo(page, '/runs/demo/checkpoints?at=demo@2');
    await page.getByRole('button', { name: 'Promote' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^Reason/).fill('the best so far');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('It is said what will happen.').waitFor();
    expect(taken.map(({ action, input }) => [action, input])).toEqual([
      ['production promote', { checkpoint: 'demo@2', reason: 'the best so far' }],
    ]);
    await page.keyboard.press('Escape');
    await goTo(page, '/');
    await page.getByRole('link', { name: 'Schedules' }).click();
    await page.getByText('the disk was full').waitFor();
    expect(await findViolations(page)).toEqual([]);
    const names = await page.getByRole('group', { name: 'Actions on nightly' }).getByRole('button').allTextContents();
    expect(names).toEqual(['Fire now', 'Backfill', 'Resume', 'Delete']);
    await page.getByRole('button', { name: 'Resume' }).click();
    await dialog.getByText('It is said what will happen.').waitFor();
    await dialog.getByRole('button', { name: 'Resume' }).click();
    await dialog.getByText('Close', { exact: true }).waitFor();
    await page.locator('main').getByText('Pause', { exact: true }).waitFor();
    await dialog.getByText('Close', { exact: true }).click();
    expect(taken.slice(1).map(({ action, input }) => [action, input])).toEqual([
      ['schedule resume', { name: 'nightly' }],
      ['schedule resume', { name: 'nightly' }],
    ]);
  });
  test('the form of a deployment has the options of the target that is chosen, and sends no others', async () => {
    const page = await openApart('/');
    const taken = await takeActions(page, (request) => result(request, 'It is said what will happen.'));
    await page.reload();
    await goTo(page, '/runs/demo/checkpoints?at=demo@2');
    await page.getByRole('button', { name: 'Deploy' }).click();
    const dialog = page.getByRole('dialog');
    const labels = async () =>
      (await dialog.locator('label > span').allTextContents()).map((text) => text.split(' ')[0]);
    expect(await labels()).toEqual(['To', 'Base', 'Prompts', 'No', 'Again']);
    await dialog.getByLabel(/^To/).selectOption('huggingface');
    expect(await labels()).toEqual(['To', 'Repo', 'Public', 'Base', 'Prompts', 'No', 'Again']);
    await dialog.getByLabel(/^Repo/).fill('me/demo');
    expect(await findViolations(page)).toEqual([]);
    await dialog.getByLabel(/^To/).selectOption('ollama');
    await dialog.getByLabel(/^Quantize/).selectOption('q8_0');
    await dialog.getByLabel(/^Url/).fill('http://127.0.0.1:11434');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('It is said what will happen.').waitFor();
    const input = { checkpoint: 'demo@2', to: 'ollama', url: 'http://127.0.0.1:11434', quantize: 'q8_0' };
    expect(taken.map((request) => [request.action, request.input])).toEqual([['deploy', input]]);
  });
});
