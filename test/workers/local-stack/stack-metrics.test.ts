import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../../play/transports/http-server.ts';
import type { ChildStatus } from '../../../workers/events.ts';
import {
  metricsUrlOf,
  serveStackMetrics,
  type MetricsSource,
} from '../../../workers/local-stack/daemon/stack-metrics.ts';

const KEY = 'a key of the engine';

const status = (name: string, given: Partial<ChildStatus> = {}): ChildStatus => ({
  name,
  agentFile: null,
  state: 'ready',
  pid: 7,
  deaths: 0,
  ...given,
});

/** A worker's metrics server; it answers whoever has the key. */
async function openWorker(text: string): Promise<string> {
  const server = createServer((request, response) => {
    response.statusCode = request.headers.authorization === `Bearer ${KEY}` ? 200 : 401;
    response.end(text);
  });
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${await listen(server, { host: '127.0.0.1', port: 0 })}/metrics`;
}

test('the metrics of all processes are at one address, and a process that does not answer hides no other', async () => {
  const sources: MetricsSource[] = [
    { status: status('temporal-server'), url: null },
    { status: status('worker-a'), url: await openWorker('# TYPE up gauge\nup 1\n') },
    { status: status('worker-b', { state: 'restarting', deaths: 2 }), url: 'http://127.0.0.1:9/metrics' },
  ];
  const spec = { metrics: { host: '127.0.0.1', port: 0 } } as never;
  const server = await serveStackMetrics({ spec, engineKey: KEY }, () => sources);
  onTestFinished(() => server?.close());
  const url = `http://127.0.0.1:${server?.port}/metrics`;
  const response = await fetch(url, { headers: { authorization: `Bearer ${KEY}` } });
  expect((await response.text()).split('\n').filter((line) => !line.startsWith('#'))).toEqual([
    'temper_process_up{process="temporal-server"} 1',
    'temper_process_up{process="worker-a"} 1',
    'temper_process_up{process="worker-b"} 0',
    'temper_process_restarts_total{process="temporal-server"} 0',
    'temper_process_restarts_total{process="worker-a"} 0',
    'temper_process_restarts_total{process="worker-b"} 2',
    'up{process="worker-a"} 1',
    '',
  ]);
});

test('a worker tells where its metrics are', () => {
  expect([null, '', '{"metricsPort":null}', '{"metricsPort":4711}'].map(metricsUrlOf)).toEqual([
    null,
    null,
    null,
    'http://127.0.0.1:4711/metrics',
  ]);
});
