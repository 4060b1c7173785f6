/** Pages in one file, of a run and of an evaluation, in a browser: they draw what they have, and ask nothing of anybody. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { renderEvalReport } from '../../cli/eval/eval-page.ts';
import { summariseOutcomes } from '../../cli/eval/summarise.ts';
import { writeReport } from '../../cli/report/write-report.ts';
import { formatNumber } from '../../core/reports/format.ts';
import type { GroupView } from '../../views/api/attempt-views.ts';
import type { RunView } from '../../views/api/run-views.ts';
import { findHeldOut } from '../../views/charts/held-out.ts';
import { writeFixtureRun } from '../cli/fixture-store.ts';
import { attemptOf } from '../store/records/made-attempt.ts';
import { findViolations } from './axe.ts';
import { connectToBrowser } from './shared-page.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const HOSTILE = '</script><img src=x onerror="globalThis.owned = 1"><script>globalThis.owned = 2</script>\u202E';
const connecting = connectToBrowser();

describe.skipIf(connecting === null)('a report in a browser', () => {
  const folder = temporaryFolder();
  let browser: Browser | null = null;
  let answers: Readonly<Record<string, unknown>> = {};
  beforeAll(async () => {
    const store = await writeFixtureRun(folder, {
      steps: 4,
      answer: HOSTILE,
      explanation: HOSTILE,
      train: { pass1RatioK3: 0.2 },
    });
    await writeReport(store, 'demo', join(folder, 'demo.html'));
    const page = await readFile(join(folder, 'demo.html'), 'utf8');
    const [, data] = /<script type="application\/json" id="answers">(.*?)<\/script>/s.exec(page)!;
    ({ answers } = JSON.parse(data!) as { answers: typeof answers });
    browser = await connecting;
  });
  afterAll(() => browser?.close());

  async function open(options: BrowserContextOptions = {}, name = 'demo.html') {
    const context = await browser!.newContext({ reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    const troubles: string[] = [];
    page.on('pageerror', (error) => troubles.push(error.message));
    page.on('console', (message) => message.type() === 'error' && troubles.push(message.text()));
    page.on('request', (request) => request.url().startsWith('file:') || troubles.push(request.url()));
    await page.goto(pathToFileURL(join(folder, name)).href);
    await page.locator('article.attempt').first().waitFor();
    return { page, troubles };
  }

  const groupsOf = (ids: (id: string) => boolean): GroupView[] =>
    Object.values(answers).filter((answer): answer is GroupView => ids((answer as GroupView).id ?? ''));
  const cards = (page: Page) => page.locator('.attempt-sets article.attempt .name');

  test('it draws each chart and each attempt, and nothing that was written by a model runs', async () => {
    const { page, troubles } = await open();
    // One that is far from the window is drawn when it comes near.
    const charts = page.locator('.charts:visible > .chart');
    expect(await charts.count()).toBeGreaterThan(3);
    for (const chart of await charts.all()) {
      await chart.scrollIntoViewIfNeeded();
      await chart.locator('canvas').waitFor();
    }
    const titles = groupsOf((id) => id.startsWith('0.1.')).flatMap(({ attempts }) =>
      attempts.map(({ title }) => title),
    );
    expect(titles.length).toBeGreaterThan(8);
    await expect.poll(() => cards(page).allTextContents()).toEqual(titles);
    expect(await page.locator('main').textContent()).toContain('</script><img src=x');
    expect(await page.evaluate('"owned" in globalThis')).toBe(false);
    expect(troubles).toEqual([]);
  });

  test('its result stands first, with the attempts before and after training and their interval', async () => {
    const { page } = await open();
    const state = (answers['runs/demo'] as RunView).state!;
    const { before, after } = findHeldOut(state)!;
    const result = page.getByRole('region', { name: 'Held-out result' });
    for (const { value, interval } of [before!, after!]) {
      expect(await result.textContent()).toContain(formatNumber(value));
      expect(await result.textContent()).toContain(`${formatNumber(interval![0])} to ${formatNumber(interval![1])}`);
    }
    expect(await result.locator('.interval-bars line').count()).toBe(2);
    const facts = await page.getByRole('region', { name: 'Numbers of the run' }).textContent();
    expect(facts).toContain(`reward, held out${formatNumber(after!.evaluation.reward)} from`);
  });

  test('a button shows the attempts of an evaluation', async () => {
    const { page } = await open();
    await page.getByRole('button', { name: 'eval after 4' }).click();
    const titles = groupsOf((id) => id === 'eval.0.4').flatMap(({ attempts }) => attempts.map(({ title }) => title));
    await expect.poll(() => cards(page).allTextContents()).toEqual(titles);
  });

  test('its other pages open, too: a group, an attempt of it, the list of attempts', async () => {
    const { page, troubles } = await open();
    const see = async (place: string, heading: string): Promise<void> => {
      await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
      await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    };
    await see('/runs/demo/groups/0.1.0', 'Group 0.1.0');
    await see('/runs/demo/attempts/0.1.0.2', 'Attempt 0.1.0.2');
    await see('/runs/demo/attempts', 'Attempts');
    await page.locator('a[href*="/attempts/0."]').first().waitFor();
    await see('/', 'demo');
    expect(troubles).toEqual([]);
  });

  test('the page of an evaluation shows models with their intervals, and what each said', async () => {
    const outcomes = ['base:demo', '</script><b>demo@4'].map((model, at) => ({
      model,
      played: { attempts: [0, 1, 2].map((index) => attemptOf(index, [], { reward: index + at })), costs: [] },
      error: null,
    }));
    const summary = summariseOutcomes('tic-tac-toe', { played: 3, of: 3 }, ['sampled by hand'], outcomes);
    await writeFile(
      join(folder, 'eval.html'),
      await renderEvalReport({ summary, outcomes, scenarioIds: ['one', 'two', 'three'] }),
    );
    const { page, troubles } = await open({}, 'eval.html');
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('tic-tac-toe');
    const bars = page.getByRole('img', { name: 'reward by model' });
    expect(await bars.locator('line').count()).toBe(2);
    const numbers = await page.getByRole('region', { name: 'Numbers' }).textContent();
    expect(numbers).toContain('</script><b>demo@4');
    expect(numbers).toContain(formatNumber(summary.models[1]!.reward!.mean));
    expect(await page.locator('article.attempt').count()).toBe(6);
    expect(await page.getByText('sampled by hand').count()).toBe(1);
    expect(await findViolations(page, 'all')).toEqual([]);
    expect(troubles).toEqual([]);
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
      ['.overview-top', '.overview-top + .advisories'].map((place) => page.locator(place).boundingBox()),
    );
    expect(below!.y - summary!.y - summary!.height).toBeGreaterThanOrEqual(12);
  });
});
