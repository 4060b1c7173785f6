/** Events that `temper ui` sends. */
import { get, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { LiveFeed } from '../../../cli/ui/live/live-feed.ts';
import { streamEvents } from '../../../cli/ui/endpoints.ts';
import { RunWatch } from '../../../cli/ui/live/run-watch.ts';
import { openViewContext } from '../../../cli/ui/view-context.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { stateKey } from '../../../store/layout.ts';
import type { Store } from '../../../store/store.ts';
import type { LiveEvent } from '../../../views/api/requests.ts';
import { runCacheOf } from '../../../views/runs/run-cache.ts';
import { fixtureState, temporaryProject, writeFixtureRun } from '../fixture-store.ts';
import { serveUi, WITH_KEY } from './served-ui.ts';

/** The store, and the keys that are read of it. */
function counted(store: Store): { store: Store; reads: () => number; keys: string[] } {
  const keys: string[] = [];
  const read = store.read.bind(store);
  const list = store.list.bind(store);
  const told = Object.assign(Object.create(store) as Store, {
    read: (key: string) => {
      keys.push(key);
      return read(key);
    },
    list: (prefix: string) => {
      keys.push(prefix);
      return list(prefix);
    },
  });
  return { store: told, reads: () => keys.length, keys };
}

async function openFeed(everyMs: number) {
  const project = temporaryProject();
  const made = await writeFixtureRun(project, { steps: 2, state: { state: 'running' } });
  const { store, reads, keys } = counted(made);
  const feed = new LiveFeed(await openViewContext(store, { env: { TEMPER_CACHE: `${project}/cache` } }), {
    everyMs,
  });
  onTestFinished(() => feed.close());
  const record = (step: number): Promise<void> =>
    made.replace(stateKey('demo'), encodeJson({ ...fixtureState('demo', 9), state: 'running', step }));
  return { project, feed, reads, keys, record };
}

/** Resolves with the first event of the kind. */
function next<Kind extends LiveEvent['kind']>(feed: LiveFeed, kind: Kind): Promise<Extract<LiveEvent, { kind: Kind }>> {
  return new Promise((resolve) => {
    const end = feed.listen((event) => {
      if (event.kind !== kind) return;
      end();
      resolve(event as Extract<LiveEvent, { kind: Kind }>);
    });
  });
}

describe('the feed', () => {
  test('tells of a state that somebody was shown and that is gone before the next look', async () => {
    const store = await writeFixtureRun(temporaryProject(), { steps: 2, state: { state: 'running' } });
    const running = (await store.read(stateKey('demo')))!;
    const watch = new RunWatch(store);
    expect((await watch.look()).changes).toHaveLength(1);
    await store.replace(stateKey('demo'), encodeJson({ ...fixtureState('demo', 2), state: 'paused' }));
    await runCacheOf(store).readHead('demo');
    await store.replace(stateKey('demo'), running);
    expect((await watch.look()).changes.map(({ run }) => run)).toEqual(['demo']);
    await runCacheOf(store).readHead('demo');
    expect((await watch.look()).changes).toEqual([]);
  });

  test('rows say what the server has a run wait for, also if the store stays as it is', async () => {
    const store = await writeFixtureRun(temporaryProject(), { steps: 2, state: { state: 'running' } });
    await writeFixtureRun(temporaryProject(), { run: 'ended', steps: 2, storeUri: store.uri });
    const asked: string[] = [];
    const views = await openViewContext(store, { env: { TEMPER_CACHE: temporaryProject() } });
    const readWait = (run: string) => Promise.resolve(`attempt ${asked.push(run)}`);
    const context = { ...views, waitOf: (run: string): string | null => feed.waitOf(run) };
    const feed = new LiveFeed(context, { everyMs: 10, readWait });
    onTestFinished(() => feed.close());
    const told: (string | null | undefined)[] = [];
    feed.listen((event) => {
      if (event.kind === 'runs') told.push(event.runs.find(({ run }) => run === 'demo')?.waitingFor);
    });
    await expect.poll(() => told.slice(0, 2), { timeout: 20_000 }).toEqual([null, 'attempt 1']);
    expect(new Set(asked)).toEqual(new Set(['demo']));
  });

  test('the server is asked about all runs at once', async () => {
    const store = await writeFixtureRun(temporaryProject(), { steps: 2, state: { state: 'running' } });
    await writeFixtureRun(temporaryProject(), { run: 'other', state: { state: 'running' }, storeUri: store.uri });
    const asked = new Set<string>();
    const readWait = (run: string): Promise<null> => {
      asked.add(run);
      // Nobody is answered before all have asked.
      return vi.waitFor(() => (expect(asked.size).toBe(2), null), 10_000);
    };
    const views = await openViewContext(store, { env: { TEMPER_CACHE: temporaryProject() } });
    const feed = new LiveFeed(views, { everyMs: 10, readWait });
    onTestFinished(() => feed.close());
    feed.listen(() => undefined);
    await expect.poll(() => [...asked].toSorted(), { timeout: 20_000 }).toEqual(['demo', 'other']);
  });

  test('tells each client which run has changed, and the rows of all runs', async () => {
    const { feed, record } = await openFeed(10);
    const rows = await next(feed, 'runs');
    expect(rows.runs.map(({ run, step }) => [run, step])).toEqual([['demo', 2]]);
    const clients = [next(feed, 'run'), next(feed, 'run'), next(feed, 'runs')];
    await record(5);
    const told = { kind: 'run', run: 'demo', step: 5, state: 'running' };
    expect(await Promise.all(clients)).toEqual([
      told,
      told,
      { kind: 'runs', runs: [expect.objectContaining({ step: 5 })] },
    ]);
  });

  test('a change of one run reads no file of the others again', async () => {
    const { project, feed, keys, record } = await openFeed(10);
    await writeFixtureRun(project, { run: 'ended', steps: 2 });
    await writeFixtureRun(project, { run: 'waits', steps: 2, state: { state: 'running' } });
    await next(feed, 'runs');
    keys.length = 0;
    const changed = next(feed, 'runs');
    await record(5);
    const steps = Object.fromEntries((await changed).runs.map(({ run, step }) => [run, step]));
    expect(steps).toEqual({ demo: 5, ended: 2, waits: 2 });
    expect(keys.filter((key) => /^runs\/(ended\/|waits\/run\.json)/.test(key))).toEqual([]);
  });

  test('reads nothing while nobody listens, and for ten as much as for one', async () => {
    const { feed, reads } = await openFeed(3_600_000);
    expect(reads()).toBe(1);
    await next(feed, 'runs');
    const forOne = reads();
    const ten = Array.from({ length: 10 }, () => feed.listen(() => undefined));
    for (const end of ten) end();
    expect(reads()).toBe(forOne);
  });
});

test('a client that reads slowly gets the newest of each run', async () => {
  let tell: (event: LiveEvent) => void = () => undefined;
  const source = {
    listen: (listener: (event: LiveEvent) => void) => {
      tell = listener;
      return () => undefined;
    },
  };
  const gone = new AbortController();
  const events = streamEvents(source, gone.signal);
  expect((await events.next()).value).toBe('retry: 2000\n\n');
  for (let step = 1; step <= 1000; step++) tell({ kind: 'run', run: 'demo', step, state: 'running' });
  tell({ kind: 'run', run: 'other\n\ndata: {}', step: 1, state: 'running' });
  const told = [(await events.next()).value, (await events.next()).value] as string[];
  expect(told[0]).toBe('data: {"kind":"run","run":"demo","step":1000,"state":"running"}\n\n');
  expect(told[1]!.match(/\n/g)).toHaveLength(2);
  gone.abort();
  expect((await events.next()).done).toBe(true);
});

test('the server streams events until the client is gone, and ends with clients connected', async () => {
  const project = temporaryProject();
  const store = await writeFixtureRun(project, { steps: 2, state: { state: 'running' } });
  const ui = await serveUi(project);
  const asking = get({ host: '127.0.0.1', port: ui.port, path: '/api/events', headers: WITH_KEY, agent: false });
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  expect(response.headers['content-type']).toBe('text/event-stream');
  const seen: string[] = [];
  const ended = new Promise<void>((resolve) => {
    response.on('data', (bytes: Buffer) => seen.push(bytes.toString()));
    response.on('close', resolve);
  });
  const until = async (text: string): Promise<void> => {
    while (!seen.join('').includes(text)) await once(response, 'data');
  };
  await until('"kind":"runs"');
  await store.replace(stateKey('demo'), encodeJson({ ...fixtureState('demo', 9), state: 'running', step: 6 }));
  await until('{"kind":"run","run":"demo","step":6,"state":"running"}');
  expect(await ui.stop()).toBe(0);
  await ended;
});
