import { readdirSync } from 'node:fs';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { beforeEach, expect, test } from 'vitest';

import { openScenarios, readScenarios } from '../../../play/scenarios.ts';
import { HubCache } from '../../../play/sources/hub-cache.ts';
import { hubSource, type HubOptions } from '../../../play/sources/hub.ts';
import { hf } from '../../../sdk/index.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { REVISION, startRowsService, type RowsService, type Served } from './rows-service.ts';

const OTHER_REVISION = 'b'.repeat(40);
const rows = Array.from({ length: 250 }, (_, index) => ({ id: `q${index}`, question: `${index} + 1` }));
const split = (changes: object = {}) => ({ config: 'main', split: 'train', rows, ...changes });

let service: RowsService;
let cache: string;
beforeEach(() => void (cache = temporaryFolder()));

const start = async (changes: Partial<Served> = {}) =>
  void (service = await startRowsService({ splits: [split()], ...changes }));

type Options = HubOptions<Record<string, unknown>, { id: string }>;
const source = (options: Options = {}, token?: string, dataset = 'owner/name') =>
  hubSource(dataset, options, service.env(cache, token));
const read = (options: Options = {}, limit = 1000) => readScenarios(source(options), limit);
const pages = () =>
  service.requests.filter((path) => path.startsWith('/rows')).map((path) => /offset=\d+/.exec(path)?.[0]);

test('rows come in pages of a hundred, and no page is read that is not needed', async () => {
  await start();
  expect(await read({ config: 'main' })).toEqual(rows);
  expect(pages()).toEqual(['offset=0', 'offset=100', 'offset=200']);
  await start();
  cache = temporaryFolder();
  expect(await read({ config: 'main' }, 100)).toHaveLength(100);
  expect(pages()).toEqual(['offset=0']);
});

test('the config may be left out if there is one, or one that is called default', async () => {
  await start({ splits: [split({ split: 'test' }), split()] });
  expect(await read({}, 1)).toEqual([rows[0]]);
  service.served.splits = [split({ config: 'other', rows: [] }), split({ config: 'default' })];
  expect(await read({}, 2)).toEqual(rows.slice(0, 2));
  service.served.splits = [split({ config: 'a' }), split({ config: 'b' })];
  await expect(read()).rejects.toThrow('owner/name/train must name one of the configs a, b; pass hf(…, { config })');
});

test('the revision is noted for the record of the run', async () => {
  await start();
  const open = openScenarios(source({ config: 'main' }), 5);
  for await (const _ of open.scenarios);
  expect(open.origin()).toEqual({ dataset: 'owner/name', config: 'main', split: 'train', revision: REVISION });
  service.served.revision = null;
  const unnamed = openScenarios(source({ config: 'main' }), 5);
  for await (const _ of unnamed.scenarios);
  expect(unnamed.origin()).toMatchObject({ revision: null });
});

test('of a pinned revision, pages that were read are not asked for again, and what was interrupted goes on', async () => {
  await start();
  const pinned = { config: 'main', revision: REVISION };
  expect(await read(pinned, 150)).toHaveLength(150);
  service.requests.length = 0;
  expect(await read(pinned)).toEqual(rows);
  expect(pages()).toEqual(['offset=200']);
  service.served.revision = OTHER_REVISION;
  expect(await read(pinned)).toEqual(rows);
});

test('HF_HUB_OFFLINE allows what is in the cache alone', async () => {
  await start();
  const pinned = { config: 'main', revision: REVISION };
  await read(pinned, 100);
  const offline = hubSource('owner/name', pinned, { ...service.env(cache), HF_HUB_OFFLINE: '1' });
  expect(await readScenarios(offline, 100)).toEqual(rows.slice(0, 100));
  await expect(readScenarios(offline, 101)).rejects.toThrow('HF_HUB_OFFLINE forbids to download it');
});

test('without a pinned revision, the newest one is asked for first', async () => {
  await start();
  await read({ config: 'main' });
  service.requests.length = 0;
  expect(await read({ config: 'main' })).toEqual(rows);
  expect(pages()).toEqual(['offset=0']);
  service.served.revision = OTHER_REVISION;
  service.served.splits = [split({ rows: rows.toReversed() })];
  expect(await read({ config: 'main' })).toEqual(rows.toReversed());
});

test('another revision than the pinned one is refused, and one that changes while rows are read', async () => {
  await start();
  await expect(read({ config: 'main', revision: OTHER_REVISION })).rejects.toMatchObject({
    type: 'BadConfig',
    message: expect.stringContaining(`must be of the revision ${OTHER_REVISION}, got ${REVISION}`) as string,
  });
  const reading = source({ config: 'main' })[Symbol.asyncIterator]();
  await reading.next();
  service.served.revision = OTHER_REVISION;
  await expect(
    (async () => {
      for await (const _ of reading);
    })(),
  ).rejects.toMatchObject({
    type: 'SourceUnavailable',
    message: expect.stringContaining('it changed while it was read') as string,
  });
});

test('shortened cells are refused', async () => {
  await start({ splits: [split({ truncated: { 120: ['question'] } })] });
  await expect(read({ config: 'main' })).rejects.toMatchObject({
    type: 'BadConfig',
    message:
      "row 121 of owner/name/main/train must be whole, but the service shortened question; pass via: 'parquet', which reads whole files",
  });
});

test.each([
  { status: 429, headers: { 'Retry-After': '0' } },
  { status: 429, headers: { RateLimit: '"api";r=0;t=0' } },
  { status: 503 },
  { status: 500, headers: { 'X-Error-Code': 'ResponseNotReady' }, body: '{"error":"retry later"}' },
])('a refusal that passes is asked again: %j', async (refusal) => {
  await start({ refusals: [refusal] });
  expect(await read({ config: 'main' }, 3)).toEqual(rows.slice(0, 3));
  expect(pages()).toHaveLength(2);
});

test('a refusal that does not pass in time is an outage, which a worker tries again later', async () => {
  const refusal = { status: 429, headers: { 'Retry-After': '0' }, body: '{"error":"Too many requests"}' };
  await start({ refusals: Array.from({ length: 6 }, () => refusal) });
  await expect(read({ config: 'main' })).rejects.toMatchObject({
    type: 'SourceUnavailable',
    retryable: true,
    message: expect.stringContaining('answered 429: Too many requests); check') as string,
  });
});

test('a wait is told, and ended by its signal; one that is too long is not begun', async () => {
  const refusals = ['60', '3600'].map((seconds) => ({ status: 429, headers: { 'Retry-After': seconds } }));
  await start({ refusals });
  const ended = new AbortController();
  const told: string[] = [];
  const onWait = (line: string): void => {
    told.push(line);
    ended.abort();
  };
  const waiting = readScenarios(source({ config: 'main' }), 3, { signal: ended.signal, onWait });
  await expect(waiting).rejects.toThrow('aborted');
  expect(told).toEqual([
    expect.stringMatching(/^owner\/name\/main\/train is unavailable .* answered 429\); asked again in 1 min 0 s$/),
  ]);
  await expect(read({ config: 'main' }, 3)).rejects.toMatchObject({ type: 'SourceUnavailable' });
  expect(pages()).toHaveLength(2);
});

test('no more of a file is kept than was announced', async () => {
  const endless = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new Uint8Array(100)) });
  const file = new HubCache(['a'], { TEMPER_CACHE: cache }).file('0.parquet', 250, (save) => save(endless));
  await expect(file).rejects.toThrow('the file has more than 250 bytes');
  expect(readdirSync(cache, { recursive: true }).filter((name) => /parquet|tmp/.test(String(name)))).toEqual([]);
});

test.each<[string, Partial<Served>, Options, RegExp]>([
  [
    'an error of the data set',
    { refusals: [{ status: 500, body: '{"error":"Job failed"}' }] },
    {},
    /cannot be read: 500 Job failed/,
  ],
  [
    'no such split',
    {},
    { split: 'tset' },
    /owner\/name\/main\/tset cannot be read: 404 The split does not exist\.; correct its name/,
  ],
  ['more rows than the service has', { partial: true }, {}, /has more rows than the 250 that the service has/],
])('%s is refused', async (_what, served, options, message) => {
  await start(served);
  await expect(read({ config: 'main', ...options })).rejects.toMatchObject({
    type: 'BadConfig',
    message: expect.stringMatching(message) as string,
  });
});

test('a page of a proxy is no data', async () => {
  await start({ refusals: [{ status: 200, body: '<html>Sign in' }] });
  await expect(read({ config: 'main' })).rejects.toThrow(
    /must be answered with JSON .* got <html>Sign in; check HF_ENDPOINT/,
  );
});

test('a private data set is read with HF_TOKEN, which no other server and no message gets', async () => {
  await start({ token: 'hf_secret' });
  expect(await readScenarios(source({ config: 'main' }, 'hf_secret'), 2)).toEqual(rows.slice(0, 2));
  await expect(read({ config: 'other' })).rejects.toThrow(
    /cannot be read: 401 The dataset does not exist.*or set HF_TOKEN if it is private or gated$/,
  );
  const wrong = await readScenarios(source({ config: 'other' }, 'hf_wrong'), 2).catch(String);
  expect(wrong).toMatch(/set HF_TOKEN to a token of an account that may read it$/);
  expect(wrong).not.toContain('hf_wrong');
});

const parquetOf = (some: typeof rows) =>
  new Uint8Array(
    parquetWriteBuffer({
      columnData: (['id', 'question'] as const).map((name) => ({ name, data: some.map((row) => row[name]) })),
    }),
  );

test('Parquet files are read one after the other, and downloaded once', async () => {
  await start({ splits: [split({ files: [parquetOf(rows.slice(0, 200)), parquetOf(rows.slice(200))] })] });
  expect(await read({ via: 'parquet' }, 10)).toEqual(rows.slice(0, 10));
  const downloads = () => service.requests.filter((path) => path.startsWith('/datasets/')).length;
  expect(downloads()).toBe(1);
  expect(await read({ via: 'parquet' })).toEqual(rows);
  expect(downloads()).toBe(2);
  const map = ({ id }: Record<string, unknown>) => (id === 'q220' ? ({} as never) : { id: String(id) });
  await expect(read({ via: 'parquet', map })).rejects.toThrow('row 221 of owner/name/train must be an object');
  expect(readdirSync(cache, { recursive: true }).filter((name) => String(name).endsWith('.tmp'))).toEqual([]);
});

test('files on another server are refused, and a split that has none', async () => {
  await start({ splits: [split({ files: [] })] });
  await expect(read({ via: 'parquet', config: 'main' })).rejects.toThrow(
    'owner/name/main/train must be one of the splits of owner/name, which has none',
  );
  const url = 'http://127.0.0.2:9/a.parquet';
  const body = JSON.stringify({ parquet_files: [{ config: 'main', split: 'train', url, size: 1 }] });
  service.served.refusals = [{ status: 200, body }];
  await expect(read({ via: 'parquet', config: 'main' })).rejects.toThrow(
    /files of .* must be on http:.*, got http:\/\/127\.0\.0\.2:9/,
  );
});

test('an empty data set has no scenarios', async () => {
  await start({ splits: [split({ rows: [] })] });
  expect(await read({ config: 'main' })).toEqual([]);
});

test.each<[() => unknown, string]>([
  [() => hf('a/b/c'), 'hf must be given the name of a data set, got "a/b/c"'],
  [() => hf('a/b', { revision: 'main' }), 'revision of hf must be a commit of 40 hexadecimal digits, got "main"'],
  [() => hf('a/b', { split: '' }), 'split of hf must be a text, got ""'],
  [() => hf('a/b', { via: 'csv' as never }), "via of hf must be 'rows' or 'parquet', got \"csv\""],
])('%s is refused at once', (make, message) => {
  expect(make).toThrow(message);
});
