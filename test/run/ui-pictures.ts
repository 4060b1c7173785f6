/** Pictures of `temper ui` in a project that has the runs `demo` and `email-small`; its checkpoints answer the chat. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Browser, Page } from 'playwright-core';
import type { AttemptsView } from '../../views/api/attempt-views.ts';

const KEY = 'the key of these pictures only';
/** A model is loaded before it answers. */
const ANSWER_MS = 300_000;
const SETTLED_MS = 1500;

interface Shot {
  readonly name: string;
  readonly path: string;
  readonly height?: number;
  readonly isDark?: true;
}

/** `temper`: the command; `picture` says where one of this name belongs. */
export async function takeUiPictures(
  browser: Browser,
  picture: (name: string) => string,
  { temper, project }: { temper: readonly string[]; project: string },
): Promise<void> {
  const env = { ...process.env, TEMPER_UI_KEY: KEY };
  const [program, ...words] = temper;
  const server = spawn(program!, [...words, 'ui', '--port', '0', '--json'], {
    cwd: project,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const url = await readUrl(server.stdout);
    const ask = async <T>(path: string, init: RequestInit = {}): Promise<T> => {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
      return (await fetch(`${url}/api/${path}`, { headers, ...init })).json() as Promise<T>;
    };
    const page = await browser.newPage({ viewport: { width: 1320, height: 860 }, reducedMotion: 'reduce' });
    await page.goto((await ask<{ url: string }>('links', { method: 'POST', body: '{}' })).url);
    const best = 'attempts?sort=-reward&kind=train&limit=1';
    let found = await ask<AttemptsView>(`runs/email-small/${best}`);
    while (!found.index.isComplete) found = await ask(`runs/email-small/${best}`);
    for (const shot of planShots(found.rows[0]!.id)) await take(page, shot, picture);
    await shootChat(page, picture);
    await page.close();
  } finally {
    server.kill('SIGINT');
    await once(server, 'exit');
  }
}

function planShots(attempt: string): Shot[] {
  const group = attempt.split('.').slice(0, 3).join('.');
  return [
    { name: 'ui-runs', path: '/', height: 420 },
    { name: 'ui-run', path: '/runs/demo' },
    { name: 'ui-compare', path: '/compare?runs=demo,email-small' },
    { name: 'ui-timeline', path: '/runs/demo?tab=timeline' },
    { name: 'ui-step', path: '/runs/demo/steps/5' },
    { name: 'ui-group', path: `/runs/email-small/groups/${group}`, isDark: true },
    { name: 'ui-tokens', path: `/runs/email-small/attempts/${attempt}?tab=tokens&color=entropy` },
    { name: 'ui-search', path: '/runs/demo/attempts?metric=moves<4&sort=-reward', isDark: true },
  ];
}

async function take(page: Page, { name, path, height = 860, isDark }: Shot, picture: (name: string) => string) {
  await page.emulateMedia({ colorScheme: isDark ? 'dark' : 'light' });
  await page.setViewportSize({ width: 1320, height });
  await page.evaluate(`location.hash = ${JSON.stringify(path)}`);
  await page.waitForLoadState('networkidle').catch(() => undefined);
  await page.waitForTimeout(SETTLED_MS);
  await page.getByText(/^Loading /).waitFor({ state: 'detached' });
  await page.screenshot({ path: picture(name) });
}

/** The untrained and the trained checkpoint, asked the same. */
async function shootChat(page: Page, picture: (name: string) => string): Promise<void> {
  await take(page, { name: 'ui-chat', path: '/runs/demo/chat?left=demo%400&right=demo%4060' }, picture);
  await page.getByRole('textbox', { name: /message/i }).fill('12o4x6789');
  await page.keyboard.press('Enter');
  const stop = page.getByRole('button', { name: 'Stop' });
  await stop.waitFor();
  await stop.waitFor({ state: 'hidden', timeout: ANSWER_MS });
  await page.waitForTimeout(SETTLED_MS);
  await page.screenshot({ path: picture('ui-chat') });
}

async function readUrl(output: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of output) {
    text += String(chunk);
    if (text.includes('\n}')) return (JSON.parse(text) as { url: string }).url;
  }
  throw new Error(`temper ui must print its address, but printed ${JSON.stringify(text)}`);
}
