/** `temper review` in this process, with the requests of its clients. */
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { RewardDesk } from '../../../cli/review/desk.ts';
import { ReviewKeys, type KeyScope } from '../../../operations/review/keys.ts';
import { openReviewServer } from '../../../cli/review/server.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import type { Store } from '../../../store/store.ts';
import { temporaryProject } from '../fixture-store.ts';
import { awaitRewards, type AwaitedOptions } from './awaited-run.ts';
import { askAt, type Answer } from '../ask-at.ts';

export const KEY = 'a review key of these tests';
const WITH_KEY = { authorization: `Bearer ${KEY}` };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

export interface Served {
  readonly store: Store;
  readonly port: number;
  /** Runs that were woken, in order. */
  readonly woken: string[];
  readonly keys: ReviewKeys;
  /** With the review key, unless `headers` has another one. */
  ask(method: string, path: string, body?: string | null, headers?: Record<string, string>): Promise<Answer>;
  give(attempt: string, body: object | string, headers?: Record<string, string>): Promise<Answer>;
  /** A page, or its form. */
  open(link: string, form?: Record<string, string>): Promise<Answer>;
  linkTo(attempt: string, more?: Partial<KeyScope>): string;
  /** Every file of the store, with its bytes. */
  files(): Promise<Record<string, string>>;
}

export async function serveReview(options: AwaitedOptions = {}): Promise<Served> {
  const store = await openStore(join(temporaryProject(), '.temper', 'store'));
  await awaitRewards(store, options);
  const keys = new ReviewKeys(KEY, await store.id());
  const woken: string[] = [];
  const desk = new RewardDesk(store, (run) => void woken.push(run));
  const place = { host: '127.0.0.1', port: 0, hosts: [], key: KEY };
  const server = await openReviewServer({ place, keys, desk });
  onTestFinished(() => server.close());
  const { port } = server;
  const ask: Served['ask'] = (method, path, body = null, headers = WITH_KEY) =>
    askAt(port, { method, path, headers, body });
  return {
    store,
    port,
    woken,
    keys,
    ask,
    give: (attempt, body, headers = {}) =>
      ask('POST', `/v1/runs/demo/attempts/${attempt}/reward`, typeof body === 'string' ? body : JSON.stringify(body), {
        ...WITH_KEY,
        ...headers,
      }),
    open: (link, form) =>
      form === undefined ? ask('GET', link, null, {}) : ask('POST', link, String(new URLSearchParams(form)), FORM),
    linkTo: (attempt, more = {}) =>
      `/r/${keys.sign({ kind: 'link', run: 'demo', attempt, expiresAt: Date.now() + 60_000, ...more })}`,
    files: async () => {
      const found: [string, string][] = [];
      for await (const { key } of store.describe('runs'))
        found.push([key, Buffer.from((await store.read(key))!).toString('hex')]);
      return Object.fromEntries(found);
    },
  };
}
