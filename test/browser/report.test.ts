/** A report's file in a browser: it draws its charts and attempts, and asks nothing of anybody. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeReport } from '../../cli/report/write-report.ts';
import type { ReportPageData } from '../../views/api/report-page.ts';
import { writeFixtureRun } from '../cli/fixture-store.ts';
import { findViolations } from './axe.ts';
import { connectToBrowser } from './shared-page.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const HOSTILE = '</script><img src=x onerror="globalThis.owned = 1"><script>globalThis.owned = 2</script>\u202E';
const connecting = connectToBrowser();

describe.skipIf(connecting === null)('a report in a browser', () => {
  const folder = temporaryFolder();
  let browser: Browser | null = null;
  let data: ReportPageData = { charts: [], attemptSets: [] };
  beforeAll(async () => {
    const store = await writeFixtureRun(folder, {
      steps: 4,
      answer: HOSTILE,
      explanation: HOSTILE,
      train: { pass1RatioK3: 0.2 },
    });
    await writeReport(store, 'demo', join(folder, 'demo.html'), '1');
    const page = await readFile(join(folder, 'demo.html'), 'utf8');
    data = JSON.parse(/<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page)![1]!) as ReportPageData;
    browser = await connecting;
  });
  afterAll(() => browser?.close());

  async function open(options: BrowserContextOptions = {}) {
    const context = await browser!.newContext({ reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    const troubles: string[] = [];
    page.on('pageerror', (error) => troubles.push(error.message));
    page.on('console', (message) => message.type() === 'error' && troubles.push(message.text()));
    page.on('request', (request) => request.url().startsWith('file:') || troubles.push(request.url()));
    await page.goto(pathToFileURL(join(folder, 'demo.html')).href);
    await page.locator('article.attempt').first().waitFor();
    return { page, troubles };
  }

  test('it draws each chart and each attempt, and nothing that was written by a model runs', async () => {
    const { page, troubles } = await open();
    const shown = data.charts.filter(({ section }) => section !== 'more');
    expect(shown.length).toBeGreaterThan(3);
    // One that is far from the window is drawn when it comes near.
    const charts = page.locator('.charts:visible > .chart');
    expect(await charts.count()).toBe(shown.length);
    for (const chart of await charts.all()) {
      await chart.scrollIntoViewIfNeeded();
      await chart.locator('canvas').waitFor();
    }
    const first = data.attemptSets.find(({ kind }) => kind === 'step')!;
    const attempts = first.groups.flatMap((group) => group.attempts);
    expect(await page.locator('article.attempt').count()).toBe(attempts.length);
    expect(await page.locator('article.attempt .name').allTextContents()).toEqual(attempts.map(({ title }) => title));
    expect(await page.locator('main').textContent()).toContain('</script><img src=x');
    expect(await page.evaluate('"owned" in globalThis')).toBe(false);
    expect(troubles).toEqual([]);
  });

  test('a button shows the attempts of an evaluation', async () => {
    const { page } = await open();
    const last = data.attemptSets.findLast(({ kind }) => kind === 'eval')!;
    await page.getByRole('button', { name: `eval after ${last.step}` }).click();
    const titles = last.groups.flatMap((group) => group.attempts.map(({ title }) => title));
    await expect.poll(() => page.locator('article.attempt .name').allTextContents()).toEqual(titles);
  });

  for (const [colorScheme, rules] of [
    ['light', 'all'],
    ['dark', 'colors'],
  ] as const)
    test(`axe finds nothing serious, ${colorScheme}`, async () => {
      const { page } = await open({ colorScheme });
      expect(await findViolations(page, rules)).toEqual([]);
    });

  test('it is no wider than a window of 360 pixels', async () => {
    const { page } = await open({ viewport: { width: 360, height: 700 } });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  });

  test('the advisories leave a gap to the result above them', async () => {
    const { page } = await open();
    const [summary, below] = await Promise.all(
      ['.summary', '.summary + .advisories'].map((place) => page.locator(place).boundingBox()),
    );
    expect(below!.y - summary!.y - summary!.height).toBeGreaterThanOrEqual(12);
  });
});
