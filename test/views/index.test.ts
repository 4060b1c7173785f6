/** The index of attempts: search, what is new, other processes, damaged and deleted files. */
import { appendFile, mkdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { writeUiStore } from '../../bench/ui/write-store.ts';
import { tryFileLock } from '../../store/bytes/file-lock.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import * as layout from '../../store/layout.ts';
import type { Store } from '../../store/store.ts';
import { encodeRollouts, type CallRecord } from '../../store/records/groups/trajectories.ts';
import { attemptOf, callOf, rolloutsOf, user } from '../store/records/made-attempt.ts';
import type { AttemptRow } from '../../views/api/attempt-views.ts';
import type { AttemptIndex } from '../../views/context/context.ts';
import { lowerInPlace } from '../../views/index/attempt-text.ts';
import { IndexFiles } from '../../views/index/index-files.ts';
import { openAttemptIndex } from '../../views/index/open-index.ts';
import { parseAttemptQuery, type AttemptQuery } from '../../views/api/attempt-query.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const STEPS = 6;
const GROUPS = 2;
const ATTEMPTS = 4;

async function madeStore(options: { run?: string; steps?: number } = {}): Promise<{ store: Store; folder: string }> {
  const folder = temporaryFolder();
  const shape = { groups: GROUPS, attempts: ATTEMPTS, turns: 3, words: 5, blobBytes: 10, evalEvery: 3 };
  const store = await writeUiStore({ folder: join(folder, 'store'), run: 'demo', steps: STEPS, ...shape, ...options });
  return { store, folder: join(folder, 'cache') };
}

async function indexed(index: AttemptIndex, query: AttemptQuery = {}): Promise<string[]> {
  await index.update('demo');
  return (await index.search('demo', query)).rows.map(({ id }) => id);
}

function call(content: string, tokenIds = [65, 66]): CallRecord {
  const logprobs = tokenIds.map(() => -0.5);
  return callOf([user('Where is İstanbul?')], content, { promptTokenIds: [1, 2, 3], tokenIds, logprobs });
}

/** A group of a step that is in progress: no verdict, no commit. */
async function playGroup(store: Store, group: number, contents: readonly string[], judge = true): Promise<void> {
  const place = { run: 'demo', branch: 0, step: STEPS + 1, group };
  const attempts = contents.map((content, attempt) =>
    attemptOf(attempt, [call(content)], { reward: attempt, metrics: { win: attempt > 0 } }),
  );
  const header = { step: place.step, group, scenarioId: 'fresh', scenario: 0 };
  const bytes = await encodeRollouts(rolloutsOf(attempts, header));
  await store.publish(layout.rolloutsKey(place), bytes);
  if (judge)
    await judgeGroup(
      store,
      group,
      contents.map((_, index) => index),
    );
}

async function judgeGroup(store: Store, group: number, rewards: readonly number[]): Promise<void> {
  const judged = {
    schema: 1,
    inputsSha256: 'i',
    rolloutsSha256: 'r',
    judge: 'agent',
    rewards,
    explanations: rewards.map(() => null),
    metrics: {},
  };
  await store.publish(layout.judgedKey({ run: 'demo', branch: 0, step: STEPS + 1, group }), encodeJson(judged));
}

test('search finds every attempt of training and evaluation, the newest first', async () => {
  const { store, folder } = await madeStore();
  const index = openAttemptIndex(store, folder);
  const ids = await indexed(index, { limit: 500 });
  expect(ids).toHaveLength(STEPS * GROUPS * ATTEMPTS + 3 * 20);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.slice(0, 2)).toEqual(['0.6.0.0', '0.6.0.1']);
  expect(index.progress('demo')).toEqual({ indexed: 15, known: 15, isComplete: true });
  expect(await indexed(index, { sort: 'oldest', kind: 'train', limit: 1 })).toEqual(['0.1.0.0']);
  expect(await indexed(index, { kind: 'eval', limit: 1, offset: 1 })).toEqual(['eval.0.6.1']);
  await index.close();
});

test('a line is counted once, by who reads the files or by who has written it', async () => {
  const files = new IndexFiles(temporaryFolder(), 'run');
  const writer = await files.openWriter();
  const row = { id: '0.1.0.0' } as AttemptRow;
  const written = new AbortController();
  const write = async (): Promise<void> => {
    const words = [{ text: Buffer.from('a'), lower: Buffer.from('a') }];
    for (let group = 0; group < 100; group += 1)
      await writer.appendGroup({ branch: 0, step: 1, group, isJudged: true }, [row], words);
    written.abort();
  };
  const read = async (): Promise<void> => {
    while (!written.signal.aborted) await files.refresh();
  };
  await Promise.all([write(), read(), read(), read()]);
  await writer.close();
  const log = await readFile(files.path('attempts.log'), 'utf8');
  for (const { group, at, bytes } of files.groups.values())
    expect(log.slice(at, at + bytes), `${group}`).toBe(JSON.stringify([[row, group, 1]]));
});

test('while another process writes the index, however long, nobody else does', async () => {
  const { store, folder } = await madeStore();
  await mkdir(join(folder, 'demo'), { recursive: true });
  const release = tryFileLock(join(folder, 'demo', 'lock'))!;
  const longAgo = new Date(Date.now() - 3_600_000);
  await utimes(join(folder, 'demo', 'lock'), longAgo, longAgo);
  const index = openAttemptIndex(store, folder);
  const updating = index.update('demo');
  expect(await Promise.race([updating, setTimeout(300, 'waits')])).toBe('waits');
  expect(index.progress('demo')).toMatchObject({ indexed: 0, known: 15 });
  release();
  await updating;
  expect(index.progress('demo')).toEqual({ indexed: 15, known: 15, isComplete: true });
  await index.close();
});

test('pages of all attempts, one after the other, are the whole list in its order', async () => {
  const { store, folder } = await madeStore();
  const index = openAttemptIndex(store, folder);
  await index.update('demo');
  for (const query of [
    { sort: 'newest' },
    { sort: 'oldest' },
    { kind: 'train' },
    { fromStep: 2, toStep: 3 },
  ] as const) {
    // With a text, even an empty one, each row is looked at.
    const whole = await index.search('demo', { ...query, text: '', limit: 500 });
    const ids: string[] = [];
    for (let offset = 0; offset < whole.total; offset += 7) {
      const page = await index.search('demo', { ...query, offset, limit: 7 });
      expect(page.total).toBe(whole.total);
      ids.push(...page.rows.map(({ id }) => id));
    }
    expect(ids).toEqual(whole.rows.map(({ id }) => id));
  }
  expect(await index.search('demo', { offset: 1000 })).toMatchObject({
    rows: [],
    total: STEPS * GROUPS * ATTEMPTS + 60,
  });
  await index.close();
});

test('filters must all match, and the total counts beyond the page', async () => {
  const { store, folder } = await madeStore();
  const index = openAttemptIndex(store, folder);
  const all = await index.update('demo').then(() => index.search('demo', { limit: 500 }));
  const wanted = all.rows.filter(({ metrics, reward, step }) => metrics['correct'] === 1 && reward! >= 1 && step <= 4);
  const query = { metric: 'correctRate>=1', minReward: 1, toStep: 4, limit: 2 } as const;
  const { rows, total } = await index.search('demo', query);
  expect(total).toBe(wanted.length);
  expect(rows.map(({ id }) => id)).toEqual(wanted.slice(0, 2).map(({ id }) => id));
  const byTokens = await index.search('demo', { sort: '-tokens', limit: 500 });
  const tokens = byTokens.rows.map(({ sampledTokens }) => sampledTokens);
  expect(tokens).toEqual(tokens.toSorted((a, b) => b - a));
  await expect(index.search('demo', { metric: 'moves about 3' })).rejects.toThrow('metric must be a name, one of');
  await index.close();
});

test('text is found in any case, and shown in its own case with the words around it', async () => {
  const { store, folder } = await madeStore();
  await playGroup(store, 0, ['The Großer Bär is far away', 'Nothing of İSTANBUL here \ud800']);
  const index = openAttemptIndex(store, folder);
  await index.update('demo');
  const { rows, excerpts } = await index.search('demo', { text: 'großer bÄR' });
  expect(rows.map(({ id }) => id)).toEqual([`0.${STEPS + 1}.0.0`]);
  expect(excerpts[rows[0]!.id]).toBe('Where is İstanbul? The Großer Bär is far away');
  const both = await index.search('demo', { text: 'istanbul' });
  // The dotted capital has another length in lower case, so it stays as it is.
  expect(both.total).toBe(0);
  expect((await index.search('demo', { text: 'İstanbul' })).total).toBe(2);
  // Words of two attempts that are neighbours in the file are not one text.
  expect((await index.search('demo', { text: 'far awayWhere' })).total).toBe(0);
  await index.close();
});

test('lower case moves no byte', () => {
  for (const text of ['ABC', 'İI', 'ẞß', '𝐀Ａ', 'Ⱥ'])
    expect(Buffer.byteLength(lowerInPlace(text)), text).toBe(Buffer.byteLength(text));
});

test('only new groups are read after the first time, in another process too', async () => {
  const { store, folder } = await madeStore();
  const first = openAttemptIndex(store, folder);
  await first.update('demo');
  await first.close();
  const log = await stat(join(folder, 'demo', 'attempts.log'));
  const second = openAttemptIndex(store, folder);
  expect(await indexed(second, { limit: 1 })).toEqual(['0.6.0.0']);
  expect((await stat(join(folder, 'demo', 'attempts.log'))).size).toBe(log.size);
  await playGroup(store, 0, ['one', 'two']);
  expect(await indexed(second, { limit: 2 })).toEqual(['0.7.0.0', '0.7.0.1']);
  expect((await stat(join(folder, 'demo', 'attempts.log'))).size).toBeGreaterThan(log.size);
  await second.close();
});

test('a group that waits for its rewards is shown at once, and again with its verdict', async () => {
  const { store, folder } = await madeStore();
  await playGroup(store, 0, ['one', 'two'], false);
  const index = openAttemptIndex(store, folder);
  await index.update('demo');
  const waiting = (await index.search('demo', { fromStep: STEPS + 1 })).rows;
  expect(waiting.map(({ use, reward }) => [use, reward])).toEqual([
    ['unjudged', 0],
    ['unjudged', 1],
  ]);
  await judgeGroup(store, 0, [0.25, 0.75]);
  await index.update('demo');
  const judged = await index.search('demo', { fromStep: STEPS + 1 });
  expect(judged.rows.map(({ use, reward, advantage }) => [use, reward, advantage])).toEqual([
    ['trained', 0.25, -0.25],
    ['trained', 0.75, 0.25],
  ]);
  await index.close();
  const other = openAttemptIndex(store, folder);
  expect((await other.search('demo', { fromStep: STEPS + 1 })).total).toBe(2);
  await other.close();
});

test('a torn end is cut off and read again; files of another version are begun anew', async () => {
  const { store, folder } = await madeStore();
  const log = join(folder, 'demo', 'attempts.log');
  const first = openAttemptIndex(store, folder);
  const ids = await indexed(first, { limit: 500 });
  await first.close();
  const whole = await readFile(log);
  const flipped = Buffer.from(whole.toString('latin1').replace('"id":"0.6.0.1"', '"id":"0.6.0.3"'), 'latin1');
  expect(flipped.equals(whole)).toBe(false);
  const torn = whole.subarray(0, whole.length - 200);
  for (const damaged of [torn, flipped, Buffer.from('{"version":0}\n'), Buffer.of()]) {
    await writeFile(log, damaged);
    const index = openAttemptIndex(store, folder);
    expect(await indexed(index, { limit: 500 })).toEqual(ids);
    await index.close();
  }
  await appendFile(log, 'not a line of ours\n');
  const index = openAttemptIndex(store, folder);
  expect(await indexed(index, { limit: 500 })).toEqual(ids);
  await index.close();
});

test('the cache may be deleted while it is in use', async () => {
  const { store, folder } = await madeStore();
  const index = openAttemptIndex(store, folder);
  const ids = await indexed(index, { limit: 500 });
  await rm(folder, { recursive: true });
  expect((await index.search('demo', {})).total).toBe(0);
  expect(await indexed(index, { limit: 500 })).toEqual(ids);
  await index.close();
});

test('two processes share one index: each group is written once', async () => {
  const { store, folder } = await madeStore();
  const pair = [openAttemptIndex(store, folder), openAttemptIndex(store, folder)];
  await Promise.all(pair.map((index) => index.update('demo')));
  const found = await Promise.all(pair.map((index) => index.search('demo', { limit: 500 })));
  expect(found[1]!.rows).toEqual(found[0]!.rows);
  const lines = (await readFile(join(folder, 'demo', 'attempts.log'), 'utf8')).trim().split('\n');
  const groups = lines.slice(1).filter((line) => !line.endsWith('\t[]'));
  expect(groups).toHaveLength(15);
  await Promise.all(pair.map((index) => index.close()));
});

test('a damaged group is left out and hides no other', async () => {
  const { store, folder } = await madeStore();
  await store.publish(
    layout.rolloutsKey({ run: 'demo', branch: 0, step: STEPS + 1, group: 0 }),
    Buffer.from('no gzip'),
  );
  await playGroup(store, 1, ['one', 'two']);
  const index = openAttemptIndex(store, folder);
  expect(await indexed(index, { fromStep: STEPS })).toContain('0.7.1.0');
  expect(index.progress('demo').isComplete).toBe(true);
  await index.close();
});

test('another run of the same name has an index of its own', async () => {
  const { store, folder } = await madeStore();
  const index = openAttemptIndex(store, folder);
  await index.update('demo');
  await store.removeFolder(layout.runPrefix('demo'));
  const other = await madeStore({ steps: 2 });
  for await (const { key } of other.store.describe(layout.runPrefix('demo')))
    await store.publish(key, (await other.store.read(key))!);
  const ids = await indexed(index, { kind: 'train', limit: 500 });
  expect(ids).toHaveLength(2 * GROUPS * ATTEMPTS);
  await index.close();
});

test('without a folder, the index goes with its process', async () => {
  const { store } = await madeStore();
  const index = openAttemptIndex(store, null);
  expect(await indexed(index, { limit: 1 })).toEqual(['0.6.0.0']);
  await index.close();
  expect(index.progress('missing')).toEqual({ indexed: 0, known: 0, isComplete: false });
});

test.each([
  ['limit=501', 'limit must be a whole number from 0 to 500, got "501"'],
  ['minReward=high', 'minReward must be a number, got "high"'],
  ['truncated=yes', 'truncated must be one of true, false, got "yes"'],
  ['sort=best', 'sort must be one of newest, oldest, reward, -reward'],
])('a wrong parameter is refused: %s', (query, message) => {
  expect(() => parseAttemptQuery(new URLSearchParams(query))).toThrow(message);
});
