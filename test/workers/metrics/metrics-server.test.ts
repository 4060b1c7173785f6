import { expect, onTestFinished, test } from 'vitest';
import { connectEngine } from '../../../play/connections/engine-connection.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { defineConfig } from '../../../workers/config/config.ts';
import { configuredMetrics, metricsKey, serveMetrics, shareCalls } from '../../../workers/metrics/metrics-server.ts';
import { PROMETHEUS, writeFamilies } from '../../../workers/metrics/exposition.ts';
import { meteredEngine } from '../../../workers/metrics/worker-metrics.ts';
import { meteredStore } from '../../../workers/metrics/metered-store.ts';
import { ProcessMetrics } from '../../../workers/metrics/process-metrics.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const KEY = 'a key of metrics';

async function serve(collect: () => Promise<string>, port = 0): Promise<string> {
  const server = await serveMetrics({ host: '127.0.0.1', port }, KEY, collect);
  onTestFinished(() => server.close());
  return `http://127.0.0.1:${server.port}`;
}

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

test('metrics are told to whoever has the key, and the store is read for nobody else', async () => {
  let scrapes = 0;
  const url = await serve(async () => `up ${(scrapes += 1)}\n`);
  for (const [path, options] of [
    ['/metrics', {}],
    ['/metrics', bearer('wrong')],
  ] as const)
    expect((await fetch(url + path, options)).status).toBe(401);
  expect((await fetch(`${url}/other`, bearer(KEY))).status).toBe(404);
  expect((await fetch(`${url}/metrics`, { method: 'POST', ...bearer(KEY) })).status).toBe(405);
  expect(scrapes).toBe(0);
  const response = await fetch(`${url}/metrics`, bearer(KEY));
  expect([response.headers.get('content-type'), await response.text()]).toEqual([PROMETHEUS, 'up 1\n']);
});

test('scrapes at the same time are collected once', async () => {
  const texts = ['up 1\n', 'up 2\n'];
  const collect = shareCalls(async () => texts.shift()!);
  expect(await Promise.all([collect(), collect()])).toEqual(['up 1\n', 'up 1\n']);
  expect(await collect()).toBe('up 2\n');
});

test('a port that is taken is named, with what to change', async () => {
  const url = await serve(async () => '');
  const { port } = new URL(url);
  await expect(serve(async () => '', Number(port))).rejects.toThrow(
    `the metrics server must be able to listen on 127.0.0.1, port ${port}, but the system refused (EADDRINUSE); set another metrics.port or metrics.host in temporal.config.ts, or pass another --metrics-port`,
  );
});

test('a port of the command line is in place of the configured one', () => {
  const config = defineConfig({ metrics: { host: '0.0.0.0' } });
  expect(configuredMetrics(config)).toBeNull();
  // `temper worker --metrics-port 9`
  expect(configuredMetrics(config, 9)).toEqual({ host: '0.0.0.0', port: 9 });
  expect(configuredMetrics(defineConfig({ metrics: { port: 8 } }))).toEqual({ host: '127.0.0.1', port: 8 });
});

test('TEMPER_METRICS_KEY is in place of the engine’s key', () => {
  expect(metricsKey({}, 'of the engine')).toBe('of the engine');
  expect(metricsKey({ TEMPER_METRICS_KEY: KEY }, 'of the engine')).toBe(KEY);
});

test('store operations are counted with their bytes, and failures by themselves', async () => {
  const metrics = new ProcessMetrics();
  onTestFinished(() => metrics.close());
  const store = meteredStore(await openStore(temporaryFolder()), metrics);
  const bytes = new Uint8Array(10);
  const ref = await store.putBlob(bytes);
  expect((await store.getBlob(ref)).length).toBe(10);
  await store.publish('a/b', bytes);
  expect((await store.publish('a/b', bytes)).created).toBe(false);
  for await (const key of store.list('a')) expect(key).toBe('a/b');
  await expect(store.getBlob({ ...ref, sha256: 'f'.repeat(64), key: `blobs/${'f'.repeat(64)}` })).rejects.toThrow(
    'ffffff',
  );
  const journal = await store.openJournal('j');
  journal.append(bytes);
  journal.close();
  const text = writeFamilies(metrics.families());
  for (const line of [
    'temper_store_operation_seconds_count{operation="publish"} 2',
    'temper_store_operation_seconds_count{operation="list"} 1',
    'temper_store_operation_seconds_count{operation="append"} 1',
    'temper_store_errors_total{operation="getBlob"} 1',
    'temper_store_bytes_total{direction="written"} 30',
    'temper_store_bytes_total{direction="read"} 10',
  ])
    expect(text).toContain(`${line}\n`);
});

test('calls to the engine are counted by status; without an answer, by none', async () => {
  const metrics = new ProcessMetrics();
  onTestFinished(() => metrics.close());
  const url = await serve(async () => '');
  const engine = meteredEngine(connectEngine({ url, key: KEY }), 'sorter', metrics.engineCallSeconds);
  const options = { headers: {}, deadlineMs: 5000, signals: [] };
  expect((await engine.post('{}', options)).status).toBe(404);
  await expect(engine.post('{}', { ...options, signals: [AbortSignal.abort()] })).rejects.toThrow('aborted');
  await engine.close();
  const text = writeFamilies(metrics.families());
  for (const status of ['404', 'none'])
    expect(text).toContain(`temper_engine_call_seconds_count{agent="sorter",status="${status}"} 1\n`);
});
