/** An attempt that is interrupted and played again: no tool is called twice, and what is unknown is told. */
import { afterAll, expect, test } from 'vitest';

import { endIdleServers } from '../../play/mcp/servers.ts';
import type { McpServer } from '../../sdk/mcp/mcp.ts';
import { until } from '../until.ts';
import { markOf, memoryJournal, type MemoryJournal } from '../play/play.ts';
import { countLines, hostile, playWith, temporaryFile, type Call } from './hostile.ts';

afterAll(() => endIdleServers());

/** Plays until the file has a line, then cancels the attempt. */
async function interrupt(
  server: McpServer,
  journal: MemoryJournal,
  line: () => boolean,
  use: (call: Call) => Promise<unknown>,
) {
  const ended = new AbortController();
  const playing = playWith(server, use, { journal, signal: ended.signal });
  const marked = markOf(playing);
  await until('it is in the call', line, 100_000, 10);
  ended.abort();
  expect((await marked).message).toBe('the attempt was cancelled');
}

const lines = async (playing: ReturnType<typeof playWith>): Promise<unknown> =>
  JSON.parse((await playing).logs.join(''));

test('recorded results are returned, and a call of unknown outcome is not made again', async () => {
  const file = temporaryFile('count');
  const server = hostile({}, 'plain', file);
  const journal = memoryJournal();
  const use = async (call: Call) => [
    await call('add', { item: 'a' }),
    await call('add', { item: 'a' }),
    await call('slow_add', { item: 'slow' }),
    await call('add', { item: 'b' }),
  ];
  await interrupt(server, journal, () => countLines(file, 'add slow') === 1, use);
  const [first, second, slow, last] = (await lines(playWith(server, use, { journal }))) as string[];
  expect([first, second, last]).toEqual(['a', 'a,a', 'a,a,b']);
  expect(slow).toMatch(/^Error: the attempt was interrupted during this call, so it may have taken effect/);
  // A third playing needs no server at all.
  expect(await lines(playWith(server, use, { journal }))).toEqual([first, second, slow, last]);
  expect([countLines(file, 'add a'), countLines(file, 'add slow'), countLines(file, 'add b')]).toEqual([2, 1, 1]);
  expect(countLines(file, 'start')).toBe(1);
});

test('an isolated server is new when its attempt is played again: its lost state is told', async () => {
  const file = temporaryFile('count');
  const server = hostile({ isolate: true }, 'plain', file);
  const journal = memoryJournal();
  const use = async (call: Call) => [await call('add', { item: 'a' }), await call('add', { item: 'b' })];
  const stops = async (call: Call) => [await call('add', { item: 'a' }), await call('slow_add', { item: 'slow' })];
  await interrupt(server, journal, () => countLines(file, 'add slow') === 1, stops);
  const [first, second] = (await lines(playWith(server, use, { journal }))) as string[];
  expect(first).toBe('a');
  expect(second).toMatch(/^Error: the server was started again, and what earlier calls left there may be lost/);
  expect([countLines(file, 'add a'), countLines(file, 'add b')]).toEqual([1, 0]);
});

test('with replay, an isolated server is brought to where it was', async () => {
  const file = temporaryFile('count');
  const server = hostile({ isolate: true, replay: true }, 'plain', file);
  const journal = memoryJournal();
  const adds = async (call: Call) => [await call('add', { item: 'a' }), await call('add', { item: 'b' })];
  const stops = async (call: Call) => [...(await adds(call)), await call('slow_add', { item: 'slow' })];
  const use = async (call: Call) => [...(await adds(call)), await call('die'), await call('add', { item: 'c' })];
  await interrupt(server, journal, () => countLines(file, 'add slow') === 1, stops);
  expect(await lines(playWith(server, use, { journal }))).toEqual([
    'a',
    'a,b',
    'Error: the server ended with exit code 3 during this call, so it may have taken effect',
    'a,b,c',
  ]);
});
