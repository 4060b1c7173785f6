/** A page that tests share, one after the other: a new one for each costs more than most tests do with it. */
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { inject } from 'vitest';

/** Properties of a page that differ from test to test. */
export type Look = Pick<BrowserContextOptions, 'colorScheme' | 'viewport'>;

const VIEWPORT = { width: 1280, height: 720 };

/** Null where no browser can be had. */
export function connectToBrowser(): Promise<Browser> | null {
  const place = inject('browser');
  return place === null ? null : chromium.connect(place);
}

/** Removes what the test before left: storage, routes, theme, size, the place of the mouse. */
export async function renewPage(page: Page, { colorScheme = 'light', viewport = VIEWPORT }: Look): Promise<void> {
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await page.setViewportSize(viewport ?? VIEWPORT);
  await page.mouse.move(0, 0);
  await page.evaluate('localStorage.clear(), sessionStorage.clear()');
}
