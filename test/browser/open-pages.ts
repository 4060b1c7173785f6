/** `temper ui` on a made store, and a browser that looks at it. */
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { uiCommand } from '../../cli/ui/command.ts';
import { openUi } from '../../cli/ui/ui.ts';
import { contextOf } from '../cli/run-cli.ts';
import { findViolations } from './axe.ts';
import { connectToBrowser, renewPage, type Look } from './shared-page.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const KEY = 'key-of-the-tests-of-the-pages-0123456789';

export interface OpenedPages {
  /** The page that the tests share, as a new one at the path, such as `/runs/demo`; once in a test. */
  readonly open: (path: string, look?: Look) => Promise<Page>;
  /** A page with storage, permissions and a clock of its own, until the test's end. */
  readonly openApart: (path: string, options?: BrowserContextOptions) => Promise<Page>;
  /** Answer of `/api/PATH`. */
  readonly ask: <T>(path: string) => Promise<T>;
  /** Ends the server alone. */
  readonly stop: () => Promise<void>;
}

/** Tests of the pages of the store in the folder. A script that fails in a page fails them. */
export async function describePages(
  title: string,
  storeFolder: string,
  tests: (pages: OpenedPages) => void,
): Promise<void> {
  const connecting = connectToBrowser();
  const opened = connecting === null ? null : await openPages(storeFolder, await connecting);
  describe.skipIf(opened === null)(`in a browser, ${title}`, () => {
    afterEach(() => opened!.endTest());
    afterAll(() => opened!.close());
    tests(opened?.pages ?? ({} as OpenedPages));
  });
}

async function openPages(storeFolder: string, browser: Browser) {
  const folder = temporaryFolder();
  const server = await startUi(folder, ['--store', storeFolder]);
  const failures: string[] = [];
  const own: Page[] = [];
  let shared: Page | null = null;
  const enter = async (options: BrowserContextOptions): Promise<Page> => {
    const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    page.on('pageerror', (error) => failures.push(`${page.url()}: ${error.message}`));
    await page.goto(await server.makeLink());
    return page;
  };
  const pages: OpenedPages = {
    open: async (path, look = {}) => {
      if (shared === null) shared = await enter({});
      await renewPage(shared, look);
      await goTo(shared, path);
      await shared.reload();
      return shared;
    },
    openApart: async (path, options = {}) => {
      const page = await enter(options);
      own.push(page);
      await goTo(page, path);
      return page;
    },
    ask: server.ask,
    stop: server.stop,
  };
  return {
    pages,
    endTest: async () => {
      await Promise.all(own.splice(0).map((page) => page.context().close()));
    },
    close: async () => {
      await browser.close();
      await server.stop();
      if (failures.length > 0) throw new Error(`scripts failed in pages:\n${failures.join('\n')}`);
    },
  };
}

/** Another place of the same page. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(path)}`);
}

/** How each of the places looks: in both themes, by axe, and in a narrow window. */
export function testLooks({ open }: OpenedPages, paths: readonly string[]): void {
  const visit = async (look: Look, check: (page: Page, path: string) => Promise<void>): Promise<void> => {
    const page = await open('/', look);
    for (const path of paths) {
      await goTo(page, path);
      await isLoaded(page);
      await check(page, path);
    }
  };

  for (const [colorScheme, rules] of [
    ['light', 'all'],
    ['dark', 'colors'],
  ] as const)
    test(`axe finds nothing on any page, ${colorScheme}`, async () => {
      const found: string[] = [];
      await visit({ colorScheme }, async (page, path) => {
        found.push(...(await findViolations(page, rules)).map((line) => `${path}: ${line}`));
      });
      expect(found).toEqual([]);
    });

  test('no page is wider than a window of 360 pixels', () =>
    visit({ viewport: { width: 360, height: 700 } }, async (page, path) => {
      expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 360]);
    }));
}

/** Everything is there that the page shows at first. */
export async function isLoaded(page: Page): Promise<void> {
  await page.locator('main h1, .run-bar h1, main .empty').first().waitFor();
  await page.locator('.loading').first().waitFor({ state: 'detached' });
}

async function startUi(folder: string, words: readonly string[]) {
  const ending = new AbortController();
  const env = { TEMPER_UI_KEY: KEY, TEMPER_CACHE: join(folder, 'cache') };
  const context = contextOf(uiCommand, folder, [...words, '--port', '0', '--json'], env);
  let ended: Promise<unknown> = Promise.resolve();
  const url = await new Promise<string>((resolve, reject) => {
    const line = (text = ''): void => resolve((JSON.parse(text) as { url: string }).url);
    const output = { ...context.output, line, errorLine: () => undefined };
    ended = openUi({ ...context, output, signal: ending.signal }).catch(reject);
  });
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  const ask = async <T>(path: string, init: RequestInit = {}): Promise<T> => {
    const response = await fetch(`${url}/api/${path}`, { headers, ...init });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json() as Promise<T>;
  };
  return {
    ask,
    makeLink: async () => (await ask<{ url: string }>('links', { method: 'POST', body: '{}' })).url,
    stop: async () => {
      ending.abort();
      await ended;
    },
  };
}
