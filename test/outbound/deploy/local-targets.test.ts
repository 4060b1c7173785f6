/** Servers on hosts of the user's: a vLLM that runs already, Ollama, and one that has the checkpoint. */
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { DEPLOY_OPTIONS } from '../../../core/contract/deploy.ts';
import type { GgufRequest, ProofRequest, WriteGguf } from '../../../outbound/deploy/targets/target.ts';
import { requireTarget } from '../../../outbound/deploy/targets.ts';
import { seededFaults, startStandIn, type StandIn } from '../stand-in.ts';
import { ADAPTER, addDeployment, madeOf, MATCHES, playStages, closing } from './made-deployment.ts';
import { startOllama } from './ollama-stand-in.ts';
import { startVllm } from './vllm-stand-in.ts';
import { temporaryFolder, temporaryStore } from '../../temporary-folder.ts';

const SEEDS = [0, 1, 2, 3];
const KEY = 'canary-of-vllm';

describe('vLLM', () => {
  const options = (url: string, more: object = {}) => ({ url, replace: false, ...more });
  const env = (folder: string) => ({ VLLM_API_KEY: KEY, TEMPER_VLLM_FOLDER: folder });

  test('the adapter is written to the shared folder and loaded from where the server sees it', async () => {
    const server = await closing(startVllm({ key: KEY }));
    const [store, shared] = [temporaryStore(), temporaryFolder()];
    const seen = join(temporaryFolder(), 'seen');
    symlinkSync(shared, seen);
    const asked = { target: 'vllm', options: options(server.url, { folder: seen }) } as const;
    const deployment = await addDeployment(store, asked);
    expect(await playStages(store, deployment, { env: env(shared) })).toEqual([]);
    const [name] = readdirSync(shared);
    expect(name).toMatch(/^demo-step12-[0-9a-f]{12}$/);
    expect(readFileSync(join(shared, name!, 'adapter_model.safetensors'))).toEqual(Buffer.from(ADAPTER));
    expect([...server.adapters]).toEqual([['demo-step12', join(seen, name!)]]);
    expect(server.violations).toEqual([]);
    const address = requireTarget('vllm').address(deployment, await made(store, deployment), env(shared));
    expect(address).toEqual({ baseUrl: `${server.url}/v1`, model: 'demo-step12', keyVariable: 'VLLM_API_KEY' });
  });

  test.each(SEEDS)('with faults of seed %i it is loaded once, and other checkpoints of the run go', async (seed) => {
    const server = await closing(startVllm({ key: KEY, fault: seededFaults(seed) }));
    for (const id of ['demo-step3', 'demo-branch1-step4', 'demo-two-step5', 'other']) server.adapters.set(id, '/there');
    const [store, shared] = [temporaryStore(), temporaryFolder()];
    const asked = { target: 'vllm', options: options(server.url, { replace: true }) } as const;
    await playStages(store, await addDeployment(store, asked), { env: env(shared) });
    expect([...server.adapters.keys()].toSorted()).toEqual(['demo-step12', 'demo-two-step5', 'other']);
    expect(readdirSync(shared)).toHaveLength(1);
  });

  test('a name of yours is loaded in place of what it was, and no other name is taken', async () => {
    const server = await closing(startVllm({ key: KEY }));
    server.adapters.set('support', '/there').set('demo-step12', '/there');
    const [store, shared] = [temporaryStore(), temporaryFolder()];
    const named = await addDeployment(store, {
      target: 'vllm',
      options: options(server.url, { modelName: 'support' }),
    });
    await playStages(store, named, { env: env(shared) });
    expect(server.adapters.get('support')).toContain(shared);
    const plain = await addDeployment(store, { target: 'vllm', options: options(server.url) });
    await expect(playStages(store, plain, { env: env(shared) })).rejects.toThrow(
      'vLLM serves something else as demo-step12; pass --model-name',
    );
    const base = await addDeployment(store, { target: 'vllm', options: options(server.url, { modelName: 'base' }) });
    await expect(playStages(store, base, { env: env(shared) })).rejects.toThrow('something else as base');
  });

  test('a repository of the hub needs no folder', async () => {
    const server = await closing(startVllm({ key: KEY }));
    const store = temporaryStore();
    const asked = { target: 'vllm', options: options(server.url, { repo: 'me/demo' }) } as const;
    await playStages(store, await addDeployment(store, asked), { env: { VLLM_API_KEY: KEY } });
    expect([...server.adapters]).toEqual([['demo-step12', 'me/demo']]);
  });

  test('a folder that is missing, or that the server does not see, is told with the remedy', async () => {
    const server = await closing(startVllm({ key: KEY }));
    const store = temporaryStore();
    const asked = await addDeployment(store, { target: 'vllm', options: options(server.url) });
    await expect(playStages(store, asked, { env: { VLLM_API_KEY: KEY } })).rejects.toThrow(
      'vLLM needs a folder that it shares with the worker, in TEMPER_VLLM_FOLDER, which is not set',
    );
    const elsewhere = options(server.url, { folder: '/nowhere' });
    const unseen = await addDeployment(store, { target: 'vllm', options: elsewhere });
    await expect(playStages(store, unseen, { env: env(temporaryFolder()) })).rejects.toThrow(
      /vLLM cannot load demo-step12: it found no adapter at \/nowhere\/demo-step12-\w+, or takes none; start it with/,
    );
  });

  test.each([
    ['file:///etc', undefined],
    ['http://user:secret@host', undefined],
    ['http://host/v1?key=1', undefined],
    ['http://host:8000', '/a/../b'],
    ['http://host:8000', 'relative'],
  ])('the address %s with the folder %s is refused', (url, folder) => {
    expect(DEPLOY_OPTIONS.vllm.safeParse({ url, ...(folder && { folder }) }).success).toBe(false);
  });
});

describe('Ollama', () => {
  /** A file that stands for the merged model. */
  function fakeGguf(): { writeGguf: WriteGguf; asked: GgufRequest[] } {
    const asked: GgufRequest[] = [];
    const writeGguf: WriteGguf = (request) => {
      asked.push(request);
      mkdirSync(request.folder, { recursive: true });
      const file = join(request.folder, 'model.gguf');
      writeFileSync(file, `GGUF of ${request.policy} in ${request.quantize}, adapter ${adapterSha256}`);
      return Promise.resolve(file);
    };
    return { writeGguf, asked };
  }
  let adapterSha256 = '';

  async function deploying(url: string, more: object = {}) {
    const store = temporaryStore();
    const options = { url, quantize: 'none', ...more };
    const deployment = await addDeployment(store, { target: 'ollama', options });
    adapterSha256 = deployment.adapter.sha256;
    return { store, deployment };
  }

  test.each(SEEDS)('with faults of seed %i the file is there once, and the model is made of it', async (seed) => {
    const server = await closing(startOllama({ fault: seededFaults(seed) }));
    const { store, deployment } = await deploying(server.url, { quantize: 'q8_0' });
    const { writeGguf, asked } = fakeGguf();
    await playStages(store, deployment, { env: {}, writeGguf });
    const [digest] = server.blobs.keys();
    expect([...server.models]).toEqual([['demo-step12', digest]]);
    expect(server.violations).toEqual([]);
    expect(asked[0]).toMatchObject({ policy: 'demo@12', quantize: 'q8_0' });
    expect(asked[0]!.chatTemplateSha256).toBe(deployment.chatTemplateSha256);
  });

  test('a model that is there already is neither merged nor uploaded again', async () => {
    const server = await closing(startOllama({}));
    const { store, deployment } = await deploying(server.url);
    const first = fakeGguf();
    await playStages(store, deployment, { env: {}, writeGguf: first.writeGguf });
    const { uploaded } = server;
    const again = await deploying(server.url);
    const second = fakeGguf();
    await playStages(again.store, again.deployment, { env: {}, writeGguf: second.writeGguf });
    expect([second.asked, server.uploaded]).toEqual([[], uploaded]);
    expect(await madeOf(again.store, again.deployment)).toMatchObject({ create: { model: 'demo-step12' } });
  });

  test('another model of that name stays, unless you chose the name', async () => {
    const server = await closing(startOllama({}));
    server.blobs.set('sha256:theirs', Buffer.from('theirs'));
    server.models.set('demo-step12', 'sha256:theirs');
    server.models.set('support', 'sha256:theirs');
    const plain = await deploying(server.url);
    await expect(playStages(plain.store, plain.deployment, { env: {}, ...fakeGguf() })).rejects.toThrow(
      'Ollama has another model under the name demo-step12; pass --model-name',
    );
    const named = await deploying(server.url, { modelName: 'support' });
    await playStages(named.store, named.deployment, { env: {}, ...fakeGguf() });
    expect(server.models.get('support')).not.toBe('sha256:theirs');
  });
});

describe('a server that has the checkpoint', () => {
  const serving = (names: readonly string[], more: object = {}) => {
    const data = names.map((id) => ({ id, object: 'model' }));
    const routes = [{ method: 'GET', path: /^\/v1\/models$/, answer: () => ({ json: { object: 'list', data } }) }];
    return closing(startStandIn({ key: KEY, routes, ...more }));
  };
  const deploying = async (server: StandIn, options: object = {}) => {
    const store = temporaryStore();
    return {
      store,
      deployment: await addDeployment(store, { target: 'server', options: { url: server.url, ...options } }),
    };
  };

  test.each(SEEDS)('with faults of seed %i the model is found by its name, and asked with the key', async (seed) => {
    const server = await serving(['other', 'demo-step12'], { fault: seededFaults(seed) });
    const { store, deployment } = await deploying(server);
    const asked: (string | null)[] = [];
    const prove = ({ address, key }: ProofRequest) => {
      asked.push(address.baseUrl, address.model, key);
      return Promise.resolve(MATCHES);
    };
    await playStages(store, deployment, { env: { TEMPER_SERVER_KEY: KEY }, prove });
    expect(asked).toEqual([`${server.url}/v1`, 'demo-step12', KEY]);
    expect(await madeOf(store, deployment)).toMatchObject({
      find: { model: 'demo-step12' },
      proof: { verdict: 'matches' },
    });
  });

  test('the only model of a server is taken by any name, unless you pass one', async () => {
    const server = await serving(['/models/model.gguf']);
    const { store, deployment } = await deploying(server);
    await playStages(store, deployment, { env: { TEMPER_SERVER_KEY: KEY } });
    expect(await madeOf(store, deployment)).toMatchObject({ find: { model: '/models/model.gguf' } });
    const named = await deploying(server, { modelName: 'mine' });
    await expect(playStages(named.store, named.deployment, { env: { TEMPER_SERVER_KEY: KEY } })).rejects.toThrow(
      'the server must list mine, the model to be proven, but lists /models/model.gguf; pass --model-name with the name of demo@12 there',
    );
  });

  test('of several models, one must be named; a key that is refused names its variable', async () => {
    const server = await serving(['one', 'two']);
    const { store, deployment } = await deploying(server);
    await expect(playStages(store, deployment, { env: { TEMPER_SERVER_KEY: KEY } })).rejects.toThrow(
      'must list demo-step12',
    );
    await expect(playStages(store, deployment, { env: {} })).rejects.toThrow('check the key in TEMPER_SERVER_KEY');
  });
});

async function made(
  ...[store, deployment]: Parameters<typeof madeOf>
): Promise<Parameters<ReturnType<typeof requireTarget>['address']>[1]> {
  return (await madeOf(store, deployment)) as never;
}
