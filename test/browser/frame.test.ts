/** Frame of the pages: keys, themes, sizes, and what happens when the server ends. */
import { expect, test } from 'vitest';
import { writeUiStore } from '../../bench/ui/write-store.ts';
import { describePages, testLooks } from './open-pages.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const folder = temporaryFolder();
await writeUiStore({ folder, run: 'demo', steps: 12, groups: 2, attempts: 4, turns: 2, blobBytes: 100 });
await writeUiStore({
  folder,
  run: 'other',
  steps: 6,
  groups: 2,
  attempts: 4,
  turns: 2,
  blobBytes: 100,
  bug: 'constant',
});

const PATHS = [
  '/',
  '/compare?runs=demo,other',
  '/runs/demo',
  '/runs/demo?tab=steps',
  '/runs/demo?tab=timeline',
  '/runs/demo?tab=lineage',
  '/runs/demo?tab=configuration',
  '/runs/demo?tab=notes',
  '/runs/demo/attempts?text=question',
  '/glossary?term=Entropy',
  '/nowhere',
];

await describePages('pages', folder, (pages) => {
  const { open, openApart, ask, stop } = pages;

  test('the first view is at most 400 kB over the wire', async () => {
    const page = await open('/');
    const debugging = await page.context().newCDPSession(page);
    let total = 0;
    debugging.on('Network.loadingFinished', ({ encodedDataLength }) => {
      total += encodedDataLength;
    });
    await debugging.send('Network.enable');
    await debugging.send('Network.clearBrowserCache');
    await page.reload();
    await page.getByRole('grid', { name: 'Runs' }).waitFor();
    expect(total).toBeGreaterThan(10_000);
    expect(total).toBeLessThan(400_000);
  });

  test('keys: ? lists them, Esc closes, g r and / go places, typing is not a key', async () => {
    const page = await open('/runs/demo');
    await page.getByRole('heading', { level: 1, name: 'demo' }).waitFor();
    await page.keyboard.press('?');
    await expect.poll(() => page.getByRole('dialog', { name: 'Keys' }).textContent()).toContain('Go to all runs');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('/');
    await page.keyboard.type('g r?');
    expect(await page.getByRole('searchbox').inputValue()).toBe('g r?');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/runs\/demo\/attempts\?text=g\+r%3F$/);
    await page.keyboard.press('g');
    await page.keyboard.press('r');
    await page.waitForURL(/#\/$/);
  });

  test('a term says what it means, and leads to its place in the glossary; the dialog of keys leads there, too', async () => {
    const page = await open('/runs/demo');
    const term = page.getByRole('heading', { level: 3, name: 'entropy' }).getByRole('link');
    expect(await term.getAttribute('title')).toBe('How undecided the policy is, in nats per sampled token.');
    await term.click();
    await page.waitForURL(/#\/glossary\?term=Entropy$/);
    const asked = page.locator('.glossary .is-asked');
    await expect.poll(() => asked.textContent()).toContain('If it falls near 0');
    await expect.poll(() => asked.isVisible()).toBe(true);
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByRole('link', { name: 'What the terms mean' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.locator('.glossary dt').count()).toBeGreaterThan(15);
  });

  test('j, Enter and Esc walk from the runs to one and back', async () => {
    const page = await open('/');
    const rows = page.getByRole('grid').getByRole('row');
    await rows.nth(1).waitFor();
    for (const row of ['2', '3']) {
      await page.keyboard.press('j');
      await expect.poll(() => page.evaluate('document.activeElement.ariaRowIndex')).toBe(row);
    }
    await page.keyboard.press('Enter');
    // The address comes before the page, whose keys are not those of the list.
    await page.getByRole('heading', { level: 1, name: /^(demo|other)$/ }).waitFor();
    await page.keyboard.press('Escape');
    await page.waitForURL(/#\/$/);
  });

  test('a chosen theme is kept, in this browser alone', async () => {
    const page = await openApart('/', { colorScheme: 'dark' });
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const dark = await background();
    await page.getByRole('button', { name: 'Theme: system' }).click();
    const light = await background();
    expect(light).not.toBe(dark);
    await page.reload();
    await page.getByRole('button', { name: 'Theme: light' }).waitFor();
    expect(await background()).toBe(light);
  });

  testLooks(pages, PATHS);

  test('a run that there is not is said, and the rest of the frame works', async () => {
    const page = await open('/runs/none');
    await expect.poll(() => page.getByRole('alert').first().textContent()).toContain('none');
    await page.getByRole('link', { name: 'Runs', exact: true }).click();
    await page.getByRole('grid', { name: 'Runs' }).waitFor();
  });

  test('when the server ends, a banner says so and what was shown stays', async () => {
    const page = await open('/runs/demo?tab=steps');
    const first = page.getByRole('grid').getByRole('row').nth(1);
    await first.waitFor();
    expect(await ask<object[]>('runs')).toHaveLength(2);
    await stop();
    await expect.poll(() => page.getByRole('alert').first().textContent()).toContain('temper ui does not answer');
    expect(await first.textContent()).toContain('12');
  });
});
