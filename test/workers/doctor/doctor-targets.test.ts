/** Against a server that answers as the real ones do: 401 to a wrong key, 403 to one without rights. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineConfig } from '../../../workers/config/config.ts';
import { checkTargets } from '../../../workers/doctor/doctor.ts';

const [GOOD, WRONG, WEAK] = ['right-key-8d2f', 'wrong-key-1c9e', 'weak-key-77ab'] as const;
const ANSWERS: Readonly<Record<string, object>> = {
  '/graphql': { data: { viewer: { username: 'ada' } } },
  '/api/bulk_log': {},
  '/api/2.0/mlflow/experiments/search': { experiments: [] },
  '/api/public/projects': { data: [{ id: 'p', name: 'support' }] },
  '/v1/traces': {},
  '/agents/otel/v1/traces': {},
  '/api/whoami-v2': { name: 'ada', auth: { accessToken: { role: 'write' } } },
  '/jobs': { data: [] },
  '/v1/accounts': { accounts: [] },
};

/** Changes of the state of a real server: a doctor makes none. */
const changes: string[] = [];

function keyOf({ headers }: IncomingMessage, body: string): string {
  const { authorization = '' } = headers;
  const [scheme, value = ''] = authorization.split(' ');
  const basic = scheme === 'Basic' ? Buffer.from(value, 'base64').toString().split(':')[1] : value;
  return [basic, headers['x-trackio-write-token'], headers['wandb-api-key'], body].join(' ');
}

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const body = Buffer.concat(parts).toString();
    const key = keyOf(request, body);
    const status = key.includes(WRONG) ? 401 : key.includes(WEAK) ? 403 : key.includes(GOOD) ? 200 : 401;
    const isEmpty = body === '' || /"logs":\[\]|Viewer|max_results/.test(body);
    if (!isEmpty) changes.push(body);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(status === 200 ? ANSWERS[request.url!] : { message: `no ${key}` }));
  });
});
let url: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

const config = () =>
  defineConfig({
    track: [{ kind: 'csv' }, { kind: 'wandb', baseUrl: url }, { kind: 'trackio', url }, { kind: 'mlflow', url }],
    trace: [
      { kind: 'langfuse', url },
      { kind: 'weave', url, entity: 'team' },
      { kind: 'otlp', url: `${url}/v1/traces` },
    ],
  });

const envWith = (key: string) => ({
  WANDB_API_KEY: key,
  TRACKIO_WRITE_TOKEN: key,
  MLFLOW_TRACKING_TOKEN: key,
  LANGFUSE_PUBLIC_KEY: 'pk-lf-1',
  LANGFUSE_SECRET_KEY: key,
  OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer ${key}`,
  HF_TOKEN: key,
  HF_ENDPOINT: url,
  TOGETHER_API_KEY: key,
  TOGETHER_BASE_URL: url,
  FIREWORKS_API_KEY: key,
  FIREWORKS_BASE_URL: url,
});

const NAMES = [
  'csv',
  'wandb',
  'trackio',
  'mlflow',
  'langfuse',
  'weave',
  'otlp',
  'huggingface',
  'together',
  'fireworks',
];

test('each tracker, exporter and target that takes its key passes, and nothing is changed there', async () => {
  const checks = await checkTargets({ config: config(), env: envWith(GOOD) });
  expect(checks.map(({ name, ok }) => [name, ok])).toEqual(NAMES.map((name) => [name, true]));
  const detailOf = (name: string) => checks.find((check) => check.name === name)!.detail;
  expect(detailOf('wandb')).toMatch(/^127\.0\.0\.1:\d+ answers and takes the key in WANDB_API_KEY of ada$/);
  expect(detailOf('langfuse')).toContain('of the project support');
  expect(changes).toEqual([]);
});

test.each([
  [WRONG, /refuses the key in [A-Z_]+( and [A-Z_]+)? \(401\)$/],
  [WEAK, /knows the key, but it lacks rights: that in [A-Z_]+( and [A-Z_]+)? \(403\)$/],
])('of the key %s it is said what is wrong, and the key is not told', async (key, words) => {
  const checks = await checkTargets({ config: config(), env: envWith(key) });
  const failed = checks.filter(({ name }) => name !== 'csv');
  expect(failed.map(({ detail }) => words.test(detail))).toEqual(failed.map(() => true));
  expect(failed.every(({ ok, remedy }) => ok === false && remedy === 'set another one')).toBe(true);
  expect(JSON.stringify(checks)).not.toContain(key);
});

test('a missing key is named by its variable, and a server that does not answer is told', async () => {
  const without = await checkTargets({ config: config(), env: {} });
  expect(without.map(({ name, ok }) => [name, ok])).toEqual(NAMES.slice(0, 7).map((name) => [name, name === 'csv']));
  const told = without.filter(({ ok }) => ok === false).map(({ detail, remedy }) => `${detail}; ${remedy}`);
  const variables = [
    'WANDB_API_KEY',
    'TRACKIO_WRITE_TOKEN',
    'MLFLOW_TRACKING',
    'LANGFUSE_SECRET_KEY',
    'WANDB_API_KEY',
    'OTLP_HEADERS',
  ];
  expect(told.map((text, index) => text.includes(variables[index]!))).toEqual(variables.map(() => true));

  const away = defineConfig({ track: [{ kind: 'mlflow', url: 'http://127.0.0.1:9' }] });
  const [check] = await checkTargets({ config: away, env: { MLFLOW_TRACKING_TOKEN: GOOD } });
  const remedy = 'check its address and the network, then run temper doctor again';
  expect(check).toMatchObject({ name: 'mlflow', ok: false, remedy });
  expect(check!.detail).toMatch(/^MLflow is unavailable \(POST http:\/\/127\.0\.0\.1:9\/.* did not answer/);
});
