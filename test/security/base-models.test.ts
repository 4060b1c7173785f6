/** The hub is asked only for what a person named on this host: by flag, in the configuration, or in a script. */
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { mergeEngineConfig } from '../../core/rules/engine-rules.ts';
import { isConfigured, registeredOnly, resolveBaseModel } from '../../workers/base-models/base-model.ts';
import { defineConfig } from '../../workers/config/config.ts';
import { makeProjectFolders } from '../../workers/project/folders.ts';
import type { StackSpec } from '../../workers/local-stack/protocol/protocol.ts';
import { pinBaseModel } from '../../workers/base-models/pin-base-model.ts';
import { createStack } from '../../workers/local-stack/daemon/stack.ts';
import { absoluteModels } from '../../workers/base-models/known-models.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const project = temporaryFolder();
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(project, { recursive: true, force: true });
});

/** A stack of one process that does nothing. */
const SPEC = {
  project,
  temporalCommand: null,
  temporal: { address: '127.0.0.1:1', namespace: 'default' },
  gpuWorkerCommand: null,
  standby: false,
  metrics: null,
  workerCommand: [process.execPath, '-e', 'setInterval(() => undefined, 1000)'],
  engine: mergeEngineConfig(
    defineConfig({ engine: { url: 'http://127.0.0.1:1', keyVariable: 'TEMPER_TEST_ENGINE_KEY' } }).engine,
    {},
  ),
  vllmPython: null,
  storeUri: 'file:///nowhere',
  queues: { workflows: 'temper', gpu: 'gpu' },
  ports: { temporal: null, ui: null, engine: null },
} satisfies StackSpec;
const QWEN = 'Qwen/Qwen3-0.6B';
const COMMIT = 'a'.repeat(40);
const resolveName = (text: string, configured = {}) => resolveBaseModel(text, project, project, configured);

test('a name of the hub that a person passes is registered, and reaches the GPU worker as such', () => {
  const { models } = resolveName(QWEN);
  expect(models).toEqual({ [QWEN]: `hub:${QWEN}` });
  expect(absoluteModels(project, { ...models, mine: 'models/mine' })).toEqual({
    [QWEN]: `hub:${QWEN}`,
    mine: join(project, 'models/mine'),
  });
});

test('a name of the hub that is read from a store registers nothing; one of the configuration stays', () => {
  expect(registeredOnly(resolveName(QWEN), {}).models).toEqual({});
  const configured = { [QWEN]: `hub:${QWEN}` };
  expect(registeredOnly(resolveName(QWEN, configured), configured).models).toEqual(configured);
});

test('a place in a bucket is registered as such, and a run names it by what is there', () => {
  const place = 'models/qwen3';
  const named = { name: `s3/bucket/${place}`, models: { [`s3/bucket/${place}`]: `s3://bucket/${place}` } };
  expect([resolveName(`s3://bucket/${place}`), resolveName(`s3://bucket/${place}/`)]).toEqual([named, named]);
  expect(absoluteModels(project, named.models)).toEqual(named.models);
  const recorded = `s3/bucket/${place}@${COMMIT}`;
  const model = resolveName(recorded);
  expect(model).toEqual({ name: recorded, models: { [recorded]: `s3://bucket/${place}@${COMMIT}` } });
  expect(registeredOnly(model, {}).models).toEqual({});
  expect(isConfigured(model, { mine: `s3://bucket/${place}` })).toBe(true);
  expect(isConfigured(model, { mine: 's3://bucket/models/other' })).toBe(false);
  expect(resolveName('s3/model').models).toEqual({ 's3/model': 'hub:s3/model' });
});

test.each([
  's3://bucket',
  's3://bucket/',
  's3://b/x',
  's3://Bucket/x',
  's3://bucket/../x',
  's3://bucket/a b',
  's3://bucket/x@v1',
])('%s is no place of a model', (text) => {
  expect(() => resolveName(text)).toThrow('a base model in a bucket must be s3://BUCKET/PREFIX');
  expect(() => resolveName('mine', { mine: text })).toThrow('a base model in a bucket must be');
});

test('keys that were pasted into an address are not shown', () => {
  expect(() => resolveName('s3://AKIA:secret@bucket/x')).toThrow(/got s3:\/\/…@bucket/);
});

test('a configured repository stands for each of its commits, a configured commit for itself alone', () => {
  const model = resolveName(`${QWEN}@${COMMIT}`);
  expect(isConfigured(model, { mine: `hub:${QWEN}` })).toBe(true);
  expect(isConfigured(model, { mine: `hub:${QWEN}@${COMMIT}` })).toBe(true);
  expect(isConfigured(model, { mine: `hub:${QWEN}@${'b'.repeat(40)}` })).toBe(false);
  expect(isConfigured(model, { [QWEN]: '/a/folder' })).toBe(false);
});

describe('a run that goes on', () => {
  const options = { config: defineConfig({}), env: {}, cache: project, onEvent: () => undefined };
  const keep = (text: string, recorded: string, configured = {}) =>
    pinBaseModel(resolveName(text, configured), recorded, options);
  const recorded = `${QWEN}@${COMMIT}`;

  test('keeps the commit that it recorded, whatever the branch is by now', async () => {
    const kept = { name: recorded, models: { [recorded]: `hub:${recorded}` } };
    expect(await keep(QWEN, recorded)).toEqual(kept);
    expect(await keep('mine', recorded, { mine: `hub:${QWEN}` })).toEqual(kept);
    expect(await keep(recorded, recorded)).toEqual(kept);
  });

  test('keeps the objects of a bucket that it recorded, without asking for them', async () => {
    const name = `s3/bucket/models/m@${COMMIT}`;
    const kept = { name, models: { [name]: `s3://bucket/models/m@${COMMIT}` } };
    expect(await keep('s3://bucket/models/m', name)).toEqual(kept);
    expect(await keep('mine', name, { mine: 's3://bucket/models/m' })).toEqual(kept);
    expect(await keep(name, name)).toEqual(kept);
  });

  test('keeps a name without a commit, where it recorded none', async () => {
    expect(await keep(QWEN, QWEN)).toEqual(resolveName(QWEN));
    expect(await keep('pocket', 'pocket')).toEqual({ name: 'pocket', models: {} });
  });
});

describe('where the engine is elsewhere, it says which commit a model is', () => {
  const asked: [url: string | undefined, key: string | undefined][] = [];
  let status = 200;
  let body: object = {};
  const server = createServer((request, response) => {
    asked.push([request.url, request.headers.authorization]);
    response.writeHead(status, { location: 'http://127.0.0.1:9/' }).end(JSON.stringify(body));
  });
  beforeAll(() => once(server.listen(0, '127.0.0.1'), 'listening'));
  afterAll(() => server.close());
  const pin = async (text: string, answer: [status: number, body: object]) => {
    [status, body] = answer;
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const config = { ...defineConfig({}), engine: { ...defineConfig({}).engine, url, keyVariable: 'K' } };
    return pinBaseModel(resolveName(text), null, {
      config,
      env: { K: 'key' },
      cache: project,
      onEvent: () => undefined,
    });
  };

  test('under the name that it gives', async () => {
    const { name } = await pin(`${QWEN}@main`, [200, { id: `${QWEN}@${COMMIT}` }]);
    expect(name).toBe(`${QWEN}@${COMMIT}`);
    expect(asked.at(-1)).toEqual([`/v1/models/${QWEN}@main`, 'Bearer key']);
  });

  test('or why it cannot serve it', async () => {
    const refused = pin(QWEN, [404, { error: { message: 'model Q must be registered; do so' } }]);
    await expect(refused).rejects.toMatchObject({ type: 'BadConfig', message: expect.stringContaining('do so') });
    await expect(pin(QWEN, [500, {}])).rejects.toMatchObject({ type: 'EngineFailed' });
    await expect(pin(QWEN, [200, { id: '../x' }])).rejects.toMatchObject({ type: 'EngineFailed' });
    await expect(pin(QWEN, [307, {}])).rejects.toMatchObject({ type: 'EngineFailed' });
  });
});

test.each(['a/b@', 'a/b@../c', 'a/b@-x', 'a/b@x@y', 'a/b@x y'])('%s names no revision', (text) => {
  expect(() => resolveName(text)).toThrow(/unknown base model/);
});

test.each(['hub:', 'hub:../x', 'hub:a', 'hub:a/b/c', 'hub:a/.b'])(
  '%s in the configuration is no model of the hub',
  (source) => {
    expect(() => resolveName('mine', { mine: source })).toThrow(/must be hub:OWNER\/NAME or hub:OWNER\/NAME@REVISION/);
  },
);

test('what was registered stays when a stack starts anew: a run that goes on needs it', async () => {
  const folders = makeProjectFolders(project);
  writeFileSync(folders.models, JSON.stringify({ [QWEN]: `hub:${QWEN}`, broken: 7, mine: '/old' }));
  const ports = { temporal: 1, ui: 2, engine: 3 };
  vi.stubEnv(SPEC.engine.keyVariable, 'key');
  const stack = await createStack(SPEC, folders, ports, () => undefined);
  await stack.attach({ type: 'attach', agents: [], models: { mine: '/new' } });
  await stack.end();
  expect(JSON.parse(readFileSync(folders.models, 'utf8'))).toEqual({ [QWEN]: `hub:${QWEN}`, mine: '/new' });
});
