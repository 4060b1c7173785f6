/** Promotions while `temper serve RUN@production` runs, with a scripted engine. */
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { followProduction } from '../../cli/serve/follow-production.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { findTrainedPolicy, type TrainedPolicy } from '../../store/records/runs/find-policy.ts';
import type { Store } from '../../store/store.ts';
import { until } from '../until.ts';
import { makeRun } from '../store/records/made-run.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, runCli } from './run-cli.ts';

const NAME = { run: 'demo', branch: null, step: 'production' } as const;

let project: string;
let store: Store;
let events: string[];
let load: (policy: string) => Promise<void>;
let stop: AbortController;
let following: Promise<void>;

beforeEach(async () => {
  project = temporaryProject();
  store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { steps: 3 });
  [events, stop, following, load] = [[], new AbortController(), Promise.resolve(), () => Promise.resolve()];
});

afterEach(async () => {
  stop.abort();
  await following;
});

const cli = async (...words: string[]) => expect((await runCli(project, words)).exitCode).toBe(0);
const promote = (...words: string[]) => cli('production', 'promote', ...words);
const served = () => events.filter((event) => event.startsWith('switched')).length;

async function follow(): Promise<void> {
  following = followProduction({
    store,
    name: NAME,
    served: await findTrainedPolicy(store, NAME),
    async load(policy) {
      events.push(`loading ${policy}`);
      await load(policy);
    },
    switchTo: ({ name }: TrainedPolicy) => void events.push(`switched to ${name}`),
    tell: (line) => void events.push(line),
    signal: stop.signal,
    everyMs: 5,
  });
}

test('a promoted checkpoint is loaded first and served then, and so is one that is gone back to', async () => {
  await promote('demo@1');
  await follow();
  await promote('demo@2', '--reason', 'better');
  await until('it is served', () => served() === 1);
  await cli('production', 'back', 'demo');
  await until('the one before is served', () => served() === 2);
  expect(events).toEqual([
    'loading demo@2',
    'switched to demo@2',
    'demo@2 is served now, demo@1 was before (better)',
    'loading demo@1',
    'switched to demo@1',
    'demo@1 is served now, demo@2 was before',
  ]);
});

test('one that cannot be loaded is told once, tried again, and served once it loads', async () => {
  let failures = 3;
  load = () => (failures-- > 0 ? Promise.reject(new Error('out of memory')) : Promise.resolve());
  await promote('demo@1');
  await follow();
  await promote('demo@3');
  await until('it is served', () => served() === 1);
  expect(events.filter((event) => event.includes('still served'))).toEqual(['demo@1 is still served: out of memory']);
  expect(events.filter((event) => event === 'loading demo@3')).toHaveLength(4);
});

test('one of another form of adapter is not served by this engine', async () => {
  await makeRun(store, { run: 'wide', steps: 1, train: { lora: { rank: 2 } } });
  await promote('demo@1');
  await follow();
  await promote('wide@1', '--to', 'demo');
  await until('it is told', () => events.length > 0);
  expect(events).toEqual([expect.stringContaining('wide@1 has another base model or another form of its adapter')]);
});

test('a run without a promotion has nothing to serve', async () => {
  expect(await complaintIn(project, ['serve', 'demo@production'], { env: { TEMPER_SERVE_KEY: 'k' } })).toContain(
    'demo@production names no checkpoint (nothing was promoted); promote one: temper production promote demo@STEP',
  );
});
