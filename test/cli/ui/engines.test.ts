/** Engines of `temper ui` itself: as many as there is memory for, and none is closed while somebody asks it. */
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { EngineModel } from '../../../cli/ui/chat/find-model.ts';
import { Engines } from '../../../cli/ui/chat/engines.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import type { ServedEngine } from '../../../workers/serving/served-engine.ts';
import { temporaryProject } from '../fixture-store.ts';

async function opened() {
  const project = temporaryProject();
  const store = await openStore(join(project, '.temper', 'store'));
  const closed: string[] = [];
  const letGo = new AbortController();
  const engines = new Engines({ project, env: {}, store, storeUri: null }, (_, { manifest }) =>
    Promise.resolve({
      connection: () => ({ post: async () => ({ status: 200, text: '' }) }) as never,
      address: () => ({ url: `http://${manifest.baseModel}`, key: null }),
      ended: new Promise(() => undefined),
      close: async () => {
        closed.push(manifest.baseModel);
        if (!letGo.signal.aborted) await new Promise((resolve) => letGo.signal.addEventListener('abort', resolve));
      },
    } satisfies ServedEngine),
  );
  const told: string[] = [];
  const open = (baseModel: string, asks = new AbortController()) => {
    const model = { model: baseModel, trained: { manifest: { baseModel, platform: {} } } } as unknown as EngineModel;
    return { asks, address: engines.open(model, (text) => told.push(text), asks.signal) };
  };
  return { engines, open, closed, told, letGo };
}

const WAITS = 'waiting for one of the 2 engines, which all answer other chats or replays';

test('a third model waits until one of two engines answers nobody, and takes the place of that one', async () => {
  const { open, closed, told, engines, letGo } = await opened();
  const [first, second] = [open('a'), open('b')];
  await Promise.all([first.address, second.address]);
  const [third, fourth] = [open('c'), open('d')];
  await vi.waitFor(() => expect(told.filter((text) => text === WAITS)).toHaveLength(2));
  // A model that has an engine waits for nothing.
  const again = open('a');
  expect(await again.address).toEqual({ url: 'http://a', key: null });
  first.asks.abort();
  fourth.asks.abort();
  await expect(fourth.address).rejects.toThrow();
  expect(closed).toEqual([]);
  second.asks.abort();
  expect(await third.address).toEqual({ url: 'http://c', key: null });
  expect(closed).toEqual(['b']);
  again.asks.abort();
  third.asks.abort();
  await open('e').address;
  expect(closed).toEqual(['b', 'a']);
  let isOver = false;
  const over = engines.close().then(() => (isOver = true));
  await vi.waitFor(() => expect(closed).toHaveLength(4));
  expect(isOver).toBe(false);
  letGo.abort();
  await over;
});
