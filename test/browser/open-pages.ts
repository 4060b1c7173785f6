/** `temper ui` on a made store, and a browser that looks at it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { uiCommand } from '../../cli/ui/command.ts';
import { openUi } from '../../cli/ui/ui.ts';
import { contextOf } from '../cli/run-cli.ts';
import { CHROMIUM_ARGUMENTS, findChromium } from './chromium.ts';

const KEY = 'key-of-the-tests-of-the-pages-0123456789';

export interface OpenedPages {
  readonly browser: Browser;
  /** A page of its own, at the path, such as `/runs/demo`. Throws at its end if a script failed in it. */
  readonly open: (path: string, options?: BrowserContextOptions) => Promise<Page>;
  /** Answer of `/api/PATH`. */
  readonly ask: <T>(path: string) => Promise<T>;
  /** Ends the server alone. */
  readonly stop: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Null where no browser can be had. */
export async function openPages(storeFolder: string, extra: readonly string[] = []): Promise<OpenedPages | null> {
  const executablePath = await findChromium();
  if (executablePath === null) return null;
  const folder = await mkdtemp(join(tmpdir(), 'temper-pages-'));
  const server = await startUi(folder, ['--store', storeFolder, ...extra]);
  const browser = await chromium.launch({ executablePath, args: [...CHROMIUM_ARGUMENTS] });
  const failures: string[] = [];
  return {
    browser,
    open: async (path, options = {}) => {
      const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
      const page = await context.newPage();
      page.on('pageerror', (error) => failures.push(`${page.url()}: ${error.message}`));
      await page.goto(await server.makeLink());
      await goTo(page, path);
      return page;
    },
    ask: server.ask,
    stop: server.stop,
    close: async () => {
      await browser.close();
      await server.stop();
      await rm(folder, { recursive: true });
      if (failures.length > 0) throw new Error(`scripts failed in pages:\n${failures.join('\n')}`);
    },
  };
}

/** Another place of the same page. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(path)}`);
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
