/** Pictures of the pages of `temper review`, of attempts that are made up. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { RewardDesk } from '../../cli/review/desk.ts';
import { ReviewKeys } from '../../operations/review/keys.ts';
import { openReviewServer } from '../../cli/review/server.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';
import { awaitRewards } from '../cli/review/awaited-run.ts';

const KEY = 'the key of this picture only';
const MESSAGES: readonly ChatMessage[] = [
  { role: 'system', content: 'You answer customers of a bicycle shop. Look an order up before you say where it is.' },
  { role: 'user', content: 'Where is my order 4217? I need the bike on Sunday.' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: '1', type: 'function', function: { name: 'find_order', arguments: '{"order": 4217}' } }],
  },
  { role: 'tool', tool_call_id: '1', content: '{"status": "shipped", "carrier": "DHL", "arrives": "2026-11-28"}' },
];
const ANSWER = 'Your bike is on its way with DHL and arrives tomorrow, on Saturday. Enjoy the ride on Sunday!';

const PATIENCE = 'Orders can take a while at this time of the year. Please be patient, and ask again next week.';
const REVIEW = {
  pairwise: true,
  comparisonsPerAttempt: 2,
  reviewers: 1,
  question: 'Which reply would you rather get?',
  weights: { review: 1, agent: 0 },
};

/** `picture` says where one of this name belongs. */
export async function takeReviewPictures(browser: Browser, picture: (name: string) => string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'temper-review-pictures-'));
  const store = await openStore(join(folder, 'store'));
  await awaitRewards(store, { run: 'support', messages: MESSAGES, answer: ANSWER, scenarioId: 'order-4217' });
  const answers = [PATIENCE, ANSWER, 'I cannot find this order.'];
  await awaitRewards(store, { run: 'desk', messages: MESSAGES, answers, external: { review: REVIEW } });
  const keys = new ReviewKeys(KEY, await store.id());
  const desk = new RewardDesk(store, () => undefined);
  const place = { host: '127.0.0.1', port: 0, hosts: [], key: KEY };
  const server = await openReviewServer({ place, keys, desk });
  try {
    const expiresAt = Date.now() + 60_000;
    const token = keys.sign({ kind: 'link', run: 'support', attempt: '0.1.0.2', expiresAt });
    const page = await browser.newPage({ viewport: { width: 780, height: 400 } });
    await page.goto(`http://127.0.0.1:${server.port}/r/${token}`);
    await page.screenshot({ path: picture('review-attempt'), fullPage: true });
    const link = keys.sign({ kind: 'run', run: 'desk', attempt: null, expiresAt });
    await page.setViewportSize({ width: 1000, height: 780 });
    await page.goto(`http://127.0.0.1:${server.port}/review/${link}?by=Ann`);
    // Not the full page: its buttons stay at the edge of the window.
    await page.screenshot({ path: picture('review-pair') });
    await page.close();
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
