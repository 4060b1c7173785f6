/** One browser for all tests of pages. */
import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { CHROMIUM_ARGUMENTS, findChromium } from './chromium.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Its address; null if no browser can be had. */
    browser: string | null;
  }
}

export async function setup(vitest: TestProject): Promise<() => Promise<void>> {
  const executablePath = await findChromium();
  if (executablePath === null) {
    vitest.provide('browser', null);
    return () => Promise.resolve();
  }
  // The worst: then Chromium's language is `en-US@posix`, which is none for the scripts of a page.
  const env = { ...process.env, LC_ALL: 'C' };
  const server = await chromium.launchServer({ executablePath, args: [...CHROMIUM_ARGUMENTS], env });
  vitest.provide('browser', server.wsEndpoint());
  return () => server.close();
}
