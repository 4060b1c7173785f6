/**
 * `temper gpu-worker` on another machine (a network namespace; on loopback where none can be made), and this one's
 * recorder as its client: who is answered, and what becomes of requests that no engine can answer.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { openStore } from '../../store/bytes/open-store.ts';
import { freePort } from '../free-port.ts';
import { openTools } from '../run/tools.ts';
import { markOf, playOne, say, type PlayOptions, type TestRollout } from '../play/play.ts';
import { temperCommand } from '../stack.ts';
import { openNamespace } from './namespace.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const KEY = 'a key of this test';
const POCKET: PlayOptions = {
  policy: { model: 'pocket', adapterSha256: null },
  rollout: { attemptTimeoutMs: 120_000, callTimeoutMs: 60_000, callRetryBudgetMs: 120_000 },
};

const namespace = openNamespace();
const isElsewhere = typeof namespace !== 'string';
const address = isElsewhere ? namespace.address : '127.0.0.1';
const project = temporaryFolder();
let worker: ChildProcess;
let engine: { url: string; key: string };

beforeAll(async () => {
  if (!isElsewhere) console.log(`on loopback: ${namespace}`);
  const { python } = await openTools();
  const port = await freePort();
  writeFileSync(join(project, 'package.json'), '{}');
  const command = [...temperCommand(), 'gpu-worker', '--port', String(port), '--threads', '1'];
  const flags = [...(isElsewhere ? ['--host', address] : []), '--allow-host', 'gpu-1.internal'];
  const [file, ...args] = isElsewhere ? namespace.run([...command, ...flags]) : [...command, ...flags];
  worker = spawn(file!, args, {
    cwd: project,
    stdio: ['ignore', 'ignore', 'inherit'],
    // Nobody listens there: engine and server do without.
    env: { ...process.env, TEMPER_PYTHON: python, TEMPER_ENGINE_KEY: KEY, TEMPORAL_ADDRESS: '127.0.0.1:9' },
  });
  engine = { url: `http://${address}:${port}`, key: KEY };
  // The first call waits until the worker listens and has opened the model.
  expect(await playOne(engine, async (context) => (await say(context, '?'), 1), POCKET)).toMatchObject({
    status: 'ok',
  });
}, 300_000);

afterAll(async () => {
  worker.kill('SIGTERM');
  if (worker.exitCode === null && worker.signalCode === null) await once(worker, 'exit');
  if (isElsewhere) namespace.remove();
});

interface Answer {
  status: number;
  body: string;
}

async function get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
  const asking = request(`${engine.url}${path}`, { headers, agent: false }).end();
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  const chunks = await response.toArray();
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks as Buffer[]).toString('utf8') };
}

const authorized = { authorization: `Bearer ${KEY}` };

test.skipIf(!isElsewhere)('another machine is answered by the address that it listens on', async () => {
  expect(await get('/v1/models', authorized)).toMatchObject({ status: 200 });
});

test('a name that it was told is answered, and no other one, key or not', async () => {
  expect(await get('/v1/models', { ...authorized, host: 'gpu-1.internal:8017' })).toMatchObject({ status: 200 });
  for (const host of ['evil.example', 'gpu-1.internal.evil.example']) {
    const { status, body } = await get('/v1/models', { ...authorized, host });
    expect(status).toBe(403);
    expect(body).toContain('--allow-host');
  }
});

test('without the key, health alone is told', async () => {
  expect(await get('/health')).toMatchObject({ status: 200 });
  expect(await get('/v1/models')).toMatchObject({ status: 401 });
  expect(await get('/v1/models', { authorization: 'Bearer wrong' })).toMatchObject({ status: 401 });
});

test('a run’s chat template is found in the store by its hash; one that is missing there is named', async () => {
  const store = await openStore(join(project, '.temper', 'store'));
  const text = '{% for message in messages %}[{{ message.role }}] {{ message.content }}{% endfor %}';
  const { sha256 } = await store.putBlob(Buffer.from(text));
  const ask = (chatTemplateSha256: string) =>
    playOne(engine, async (context) => (await say(context, 'hi'), 1), {
      ...POCKET,
      rollout: { ...POCKET.rollout, chatTemplateSha256 },
    });
  const { calls } = await ask(sha256);
  expect(calls[0]?.promptTokenIds).toEqual([...Buffer.from('[user] hi')]);
  const mark = await markOf(ask('a'.repeat(64)));
  expect(mark).toMatchObject({ type: 'BadConfig', message: expect.stringContaining(`has no blobs/${'a'.repeat(64)}`) });
});

test('a client with another key is told which variable holds it', async () => {
  const mark = await markOf(
    playOne({ ...engine, url: `${engine.url}/`, key: 'wrong' }, (context) => say(context, '?').then(() => 1), POCKET),
  );
  expect(mark).toMatchObject({ type: 'BadConfig', retryable: false });
  expect(mark.message).toMatch(/refused with 401.*TEMPER_ENGINE_KEY/);
});

/** Agents do nothing with a refusal. */
const asking =
  (content: string, more: object = {}): TestRollout =>
  async (context) => {
    await say(context, content, more).catch(() => null);
    return 0.5;
  };

test.each([
  ['long', 2_000_000],
  ['too long to be sent', 17_000_000],
])('a prompt that is %s cuts its attempt, and the next one is played', async (_name, length) => {
  const playing = playOne(engine, asking('a long page '.repeat(length / 12)), POCKET);
  expect(await get('/health')).toMatchObject({ status: 200 });
  expect(await playing).toMatchObject({ status: 'ok', reward: 0.5, truncated: true });
  expect(await playOne(engine, asking('?'), POCKET)).toMatchObject({ status: 'ok', truncated: false });
});

test('a request that no engine can read ends the run with the reason, and is asked once', async () => {
  let parameters: object = {};
  for (let level = 0; level < 300; level++) parameters = { properties: parameters };
  const tools = [{ type: 'function', function: { name: 'deep', parameters } }];
  const mark = await markOf(playOne(engine, asking('?', { tools }), POCKET));
  expect(mark).toMatchObject({ type: 'BadConfig', retryable: false });
  expect(mark.message).toMatch(/refused with 400: the body must be nested at most 100 levels deep.*; make it flatter/);
  expect(await playOne(engine, asking('?'), POCKET)).toMatchObject({ status: 'ok' });
});

test('an engine that stays away: the attempt is no data, and what to do is said', async () => {
  worker.kill('SIGKILL');
  await once(worker, 'exit');
  const mark = await markOf(playOne(engine, asking('?'), { ...POCKET, rollout: { callRetryBudgetMs: 2000 } }));
  expect(mark).toMatchObject({ type: 'EngineFailed', retryable: true });
  expect(mark.message).toMatch(/within its retry budget of 2000 ms .*; start it, or correct its address/);
});
