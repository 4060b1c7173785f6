/** A static site, opened from its folder in a real browser. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatNumber } from '../../core/reports/format.ts';
import { runCli } from '../cli/run-cli.ts';
import { summary, temporaryProject, writeFixtureRun } from '../cli/fixture-store.ts';
import { connectToBrowser } from './shared-page.ts';

const HOSTILE = '</script><img src=x onerror="globalThis.hacked=1"><b>bold</b>';
const connecting = connectToBrowser();

describe.skipIf(connecting === null)('an export', () => {
  let browser: Browser | null = null;
  beforeAll(async () => {
    browser = await connecting;
  });
  afterAll(() => browser?.close());

  test('shows its runs, steps, groups and attempts without a server, and what a model wrote as text', async () => {
    const project = temporaryProject();
    await writeFixtureRun(project, { steps: 3, answer: HOSTILE });
    const env = { TEMPER_CACHE: join(project, 'cache') };
    expect((await runCli(project, ['ui', '--export', 'site'], { env })).exitCode).toBe(0);
    const page = await browser!.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
    page.on('pageerror', ({ message }) => complaints.push(message));
    const site = pathToFileURL(join(project, 'site', 'index.html')).href;
    const see = async (place: string, text: string): Promise<void> => {
      await page.goto(`${site}#${place}`);
      await page.getByText(text).first().waitFor();
    };
    await see('/', 'demo');
    await see('/runs/demo', 'tic-tac-toe');
    await see('/runs/demo/steps/3', formatNumber(summary(3, 3).reward));
    await see('/runs/demo/groups/0.3.0', '<b>bold</b>');
    await see('/runs/demo/attempts/0.3.0.1', HOSTILE);
    await see('/runs/demo/attempts?minReward=0.5&kind=train&sort=-reward', ' match');
    await page.locator('a[href*="/attempts/0."]').first().waitFor();
    await see('/runs/demo/attempts?minReward=1000&kind=train', 'No attempt matches');
    await see('/runs/demo/attempts/0.99.0.0', 'does not contain');
    expect(await page.evaluate(() => 'hacked' in globalThis)).toBe(false);
    expect(complaints).toEqual([]);
    await page.close();
  });
});
