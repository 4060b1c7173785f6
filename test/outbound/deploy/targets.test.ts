/** Each target against a stand-in of it that loses answers, delivers twice and refuses: nothing is made twice. */
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { hashBytes } from '../../../store/bytes/sha256.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { readDeployment, stateOfDeployment } from '../../../store/records/production/deployments.ts';
import { BUCKET } from '../../s3-server.ts';
import { seededFaults, type Fault } from '../stand-in.ts';
import { startWandb } from '../track/wandb-stand-in.ts';
import { startFireworks } from './fireworks-stand-in.ts';
import { startHub } from './hub-stand-in.ts';
import { temporaryStore } from '../../temporary-folder.ts';
import { ADAPTER, addDeployment, KEYS, madeOf, MATCHES, playStages, closing } from './made-deployment.ts';
import { ENDPOINT, startTogether, type TogetherOptions } from './together-stand-in.ts';
import { sharedS3 } from '../../shared-s3.ts';

const SEEDS = Array.from({ length: 4 }, (_, seed) => seed);

type Faults = (method: string, path: string) => Fault | null;

describe('the Hugging Face hub', () => {
  const hub = (fault?: Faults) => closing(startHub({ key: KEYS.HF_TOKEN, ...(fault && { fault }) }));
  const options = { repo: 'me/demo', public: false };

  test('one commit with the folder, its card and license, and a tag; the bytes there prove it', async () => {
    const standIn = await hub();
    const store = temporaryStore();
    const deployment = await addDeployment(store, { target: 'huggingface', options });
    expect(await playStages(store, deployment, { env: { ...KEYS, HF_ENDPOINT: standIn.url } })).toEqual([]);
    const { private: isPrivate, commits, tags } = standIn.repos.get('me/demo')!;
    expect([isPrivate, [...tags], standIn.violations]).toEqual([true, [['step12', commits[0]!.id]], []]);
    expect(commits.map(({ title }) => title)).toEqual([`demo@12 (deployment ${deployment.id})`, 'initial commit']);
    const files = [...commits[0]!.files].map(([path, { bytes }]) => [path, bytes.toString()]);
    expect(Object.fromEntries(files)).toMatchObject({
      'adapter_model.safetensors': Buffer.from(ADAPTER).toString(),
      'chat_template.jinja': '{{ messages }}',
      'README.md': '---\nlicense: "apache-2.0"\nbase_model: "base/model"\n---\n\n# demo@12\n',
    });
    expect(JSON.parse(String(commits[0]!.files.get('adapter_config.json')?.bytes))).toMatchObject({
      base_model_name_or_path: 'base/model',
      r: 8,
    });
    expect(await madeOf(store, deployment)).toMatchObject({
      repository: { url: `${standIn.url}/me/demo`, private: true },
      upload: { commit: commits[0]!.id },
      tag: { revision: 'step12' },
      proof: { verdict: 'same-bytes', files: 4 },
    });
    // A stage that was recorded asks for nothing, not even for a key.
    expect(await playStages(store, deployment, { env: {} })).toEqual([]);
  });

  test.each(SEEDS)('with faults of seed %i, the repository has one commit of it, and each file once', async (seed) => {
    const standIn = await hub(seededFaults(seed));
    const store = temporaryStore();
    const deployment = await addDeployment(store, { target: 'huggingface', options });
    await playStages(store, deployment, { env: { ...KEYS, HF_ENDPOINT: standIn.url } });
    expect(standIn.repos.get('me/demo')!.commits).toHaveLength(2);
    expect(standIn.violations).toEqual([]);
    expect(stateOfDeployment((await readDeployment(store, 'demo', deployment.id))!)).toBe('deployed');
  });

  test('a commit whose answer was lost is found again, and not made twice', async () => {
    const faults: Fault[] = ['lost'];
    const standIn = await hub((_, path) => (path.endsWith('/commit/main') ? (faults.pop() ?? null) : null));
    const store = temporaryStore();
    const deployment = await addDeployment(store, { target: 'huggingface', options });
    const failures = await playStages(store, deployment, { env: { ...KEYS, HF_ENDPOINT: standIn.url } });
    expect([failures.length, standIn.repos.get('me/demo')!.commits.length]).toEqual([1, 2]);
  });

  test('a repository that everybody can read is refused, as is a key, and a tag of another adapter', async () => {
    const standIn = await hub();
    const store = temporaryStore();
    const env = { ...KEYS, HF_ENDPOINT: standIn.url };
    const shared = await addDeployment(store, { target: 'huggingface', options: { repo: 'me/demo', public: true } });
    await playStages(store, shared, { env });
    const hidden = await addDeployment(store, { target: 'huggingface', options });
    await expect(playStages(store, hidden, { env })).rejects.toThrow(
      'the repository me/demo must be private, but everybody can read it; pass --public, or name another repository',
    );
    await expect(playStages(store, hidden, { env: { ...env, HF_TOKEN: 'hf_another-key' } })).rejects.toThrow(
      'the Hugging Face hub refused the request (POST http://',
    );
    await expect(playStages(store, hidden, { env: { HF_ENDPOINT: standIn.url } })).rejects.toThrow(
      'the Hugging Face hub needs a key in HF_TOKEN, which is not set in the environment of the worker',
    );
    const adapter = await store.putBlob(new TextEncoder().encode('another adapter'));
    const other = await addDeployment(store, {
      target: 'huggingface',
      options: shared.options,
      adapter,
      baseModel: 'b/m',
    });
    await expect(playStages(store, other, { env })).rejects.toThrow('the tag step12 of me/demo marks another adapter');
  });

  test('a file that was changed there fails the proof', async () => {
    const standIn = await hub();
    const store = temporaryStore();
    const deployment = await addDeployment(store, { target: 'huggingface', options });
    const env = { ...KEYS, HF_ENDPOINT: standIn.url };
    await playStages(store, { ...deployment, stages: deployment.stages.slice(0, -1) }, { env });
    const files = standIn.repos.get('me/demo')!.commits[0]!.files as Map<string, { bytes: Buffer }>;
    files.set('adapter_config.json', { bytes: Buffer.from('{}') });
    await expect(playStages(store, deployment, { env })).rejects.toThrow(
      'what is at huggingface is not demo@12: adapter_config.json has other bytes',
    );
    expect(await readDeployment(store, 'demo', deployment.id)).toMatchObject({
      status: { state: 'failed', stage: 'proof', message: expect.stringContaining('has other bytes') as string },
    });
  });
});

describe('Fireworks', () => {
  const fireworks = (fault?: Faults) =>
    closing(startFireworks({ key: KEYS.FIREWORKS_API_KEY, ...(fault && { fault }) }));
  const request = {
    target: 'fireworks',
    options: { account: 'me', deployment: 'my-qwen', replace: true },
    baseModel: 'accounts/fireworks/models/qwen3-4b',
  } as const;

  test.each(SEEDS)('with faults of seed %i, there is one model, validated and loaded once', async (seed) => {
    const standIn = await fireworks(seed === 0 ? undefined : seededFaults(seed));
    const store = temporaryStore();
    const deployment = await addDeployment(store, request);
    const proofs: unknown[] = [];
    await playStages(store, deployment, {
      env: { ...KEYS, FIREWORKS_BASE_URL: standIn.url },
      prove: ({ address }) => {
        proofs.push(address);
        return Promise.resolve({
          verdict: 'matches',
          detail: 'all the same',
          prompts: 8,
          measured: { difference: 0.01 },
        });
      },
    });
    const [model, ...others] = standIn.models;
    expect([model?.state, others, standIn.violations]).toEqual(['READY', [], []]);
    expect([...model!.files.keys()]).toEqual(['adapter_config.json', 'adapter_model.safetensors', 'fireworks.json']);
    expect(JSON.parse(String(model!.files.get('fireworks.json')))).toEqual({
      conversation_config: { style: 'jinja', args: { template: '{{ messages }}' } },
    });
    expect(standIn.loaded).toMatchObject([{ model: 'accounts/me/models/demo-step12', isReplacing: true }]);
    expect(proofs).toEqual([
      {
        baseUrl: `${standIn.url}/inference/v1`,
        model: 'accounts/me/models/demo-step12#accounts/me/deployments/my-qwen',
        keyVariable: 'FIREWORKS_API_KEY',
      },
    ]);
    expect(await madeOf(store, deployment)).toMatchObject({ proof: { verdict: 'matches', difference: 0.01 } });
  });

  test('ranks and modules that it does not take are refused before anything is made, and so is a name that is taken', async () => {
    const standIn = await fireworks();
    const store = temporaryStore();
    const env = { ...KEYS, FIREWORKS_BASE_URL: standIn.url };
    const refusals: [object, string][] = [
      [{ r: 128 }, 'Fireworks takes a rank from 4 to 64, but demo@12 has rank 128; train with other --lora-rank'],
      [{ target_modules: ['q_proj', 'embed_tokens'] }, 'but demo@12 has one of embed_tokens; train with other'],
    ];
    for (const [index, [shape, message]] of refusals.entries()) {
      const deployment = await addDeployment(store, { ...request, shape, policy: `demo@12:${index}` });
      await expect(playStages(store, { ...deployment, policy: 'demo@12' }, { env })).rejects.toThrow(
        message.replace('demo@12', `demo@12:${index}`),
      );
    }
    expect(standIn.models).toEqual([]);
    await playStages(store, await addDeployment(store, request), { env });
    const other = await addDeployment(store, {
      ...request,
      adapter: await store.putBlob(new Uint8Array(9)),
      prompts: 2,
      options: { account: 'me', modelName: 'demo-step12' },
    });
    await expect(playStages(store, other, { env })).rejects.toThrow(
      'Fireworks has another model under the name accounts/me/models/demo-step12; pass --model-name',
    );
  });

  test('a proof that fails fails the deployment, by the name of what is wrong', async () => {
    const standIn = await fireworks();
    const store = temporaryStore();
    const deployment = await addDeployment(store, request);
    const detail = 'all 8 answers are those of the base model';
    await expect(
      playStages(store, deployment, {
        env: { ...KEYS, FIREWORKS_BASE_URL: standIn.url },
        prove: () => Promise.resolve({ verdict: 'adapter-absent', detail, prompts: 8, measured: {} }),
      }),
    ).rejects.toThrow(`at fireworks is not demo@12 (adapter-absent): ${detail}`);
    expect(stateOfDeployment((await readDeployment(store, 'demo', deployment.id))!)).toBe('failed');
  });
});

test.each(SEEDS)(
  'with faults of seed %i, W&B has one committed artifact, and its proof asks W&B Inference',
  async (seed) => {
    const standIn = await closing(startWandb(seed === 0 ? {} : { fault: seededFaults(seed) }));
    const store = temporaryStore();
    const options = { entity: 'me', project: 'games' };
    const deployment = await addDeployment(store, { target: 'wandb', options });
    const asked: unknown[] = [];
    await playStages(store, deployment, {
      env: { WANDB_API_KEY: standIn.key, WANDB_BASE_URL: standIn.url },
      prove: ({ address }) => {
        asked.push(address);
        return Promise.resolve(MATCHES);
      },
    });
    expect(standIn.violations).toEqual([]);
    expect(standIn.artifacts).toMatchObject([
      { name: 'demo-step12', type: 'lora', state: 'COMMITTED', aliases: ['step12', 'latest'] },
    ]);
    expect(String(standIn.artifacts[0]?.files.get('adapter_model.safetensors'))).toBe(Buffer.from(ADAPTER).toString());
    expect(asked).toEqual([
      {
        baseUrl: 'https://api.inference.wandb.ai/v1',
        model: 'wandb-artifact:///me/games/demo-step12:step12',
        keyVariable: 'WANDB_API_KEY',
      },
    ]);
  },
);

describe('Together and buckets', async () => {
  const s3 = await sharedS3();
  beforeAll(() => {
    for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
  });
  afterAll(() => vi.unstubAllEnvs());
  const together = (options: Partial<TogetherOptions> = {}) =>
    closing(startTogether({ key: KEYS.TOGETHER_API_KEY, ...options }));
  const request = (prefix: string) =>
    ({ target: 'together', options: { bucket: `s3://${BUCKET}/${prefix}`, endpoint: ENDPOINT.id } }) as const;

  test.each(SEEDS)('with faults of seed %i, Together gets one job, and its endpoint one adapter', async (seed) => {
    const faults = seededFaults(seed);
    const sources: string[] = [];
    const standIn = await together({
      // A network that delivers a creation twice cannot be noticed: the interface has no key for idempotence.
      fault: (method, path) => {
        const fault = seed === 0 ? null : faults(method, path);
        return method === 'POST' && fault === 'twice' ? null : fault;
      },
      async fetchSource({ model_source: source }) {
        const response = await fetch(source);
        sources.push(gunzipSync(Buffer.from(await response.arrayBuffer())).toString());
      },
    });
    const store = temporaryStore();
    const deployment = await addDeployment(store, request(`together-${seed}`));
    const env = { ...KEYS, TOGETHER_BASE_URL: `${standIn.url}/v1` };
    await playStages(store, deployment, { env });
    expect(standIn.violations).toEqual([]);
    expect(standIn.jobs.map(({ upload }) => upload)).toMatchObject([
      { model_name: 'demo-step12', model_type: 'adapter', base_model: 'base/model' },
    ]);
    expect(sources).toEqual([expect.stringContaining('adapter_model.safetensors')]);
    expect(standIn.adapters).toEqual([`${ENDPOINT.name}:me/demo-step12`]);
    expect(await madeOf(store, deployment)).toMatchObject({
      register: { job: 'job-1' },
      attach: { model: `${ENDPOINT.name}:me/demo-step12` },
      proof: { verdict: 'matches' },
    });
  });

  test('it fetches from the hub, too; without an endpoint nothing serves the model, and a failed job says why', async () => {
    const hub = await closing(startHub({ key: KEYS.HF_TOKEN }));
    const store = temporaryStore();
    const options = { repo: 'me/demo' };
    const env = { ...KEYS, HF_ENDPOINT: hub.url };
    const working = await together();
    const deployment = await addDeployment(store, { target: 'together', options });
    await playStages(store, deployment, { env: { ...env, TOGETHER_BASE_URL: `${working.url}/v1` } });
    expect(working.jobs.map(({ upload }) => upload)).toMatchObject([
      { model_source: 'me/demo', hf_token: KEYS.HF_TOKEN },
    ]);
    expect(await madeOf(store, deployment)).toMatchObject({ proof: { verdict: 'none' } });
    const failing = await together({ failure: 'the base model is not supported' });
    const other = await addDeployment(store, { target: 'together', options, baseModel: 'other/model' });
    await expect(playStages(store, other, { env: { ...env, TOGETHER_BASE_URL: `${failing.url}/v1` } })).rejects.toThrow(
      "Together's job job-1 failed (the base model is not supported); correct that, and deploy with --again",
    );
  });

  test('a folder of a bucket has the files by hash; one with other bytes is not overwritten', async () => {
    const store = temporaryStore();
    const options = { bucket: `s3://${BUCKET}/adapters` };
    const deployment = await addDeployment(store, { target: 's3', options });
    await playStages(store, deployment, { env: KEYS });
    const bucket = await openStore(options.bucket);
    const manifest = JSON.parse(String(Buffer.from((await bucket.read('demo@12/manifest.json'))!))) as object;
    expect(manifest).toMatchObject({ policy: 'demo@12', baseModel: 'base/model' });
    expect((manifest as { files: object[] }).files).toContainEqual({
      path: 'adapter_model.safetensors',
      bytes: ADAPTER.byteLength,
      sha256: hashBytes(ADAPTER),
    });
    expect(await madeOf(store, deployment)).toMatchObject({ proof: { verdict: 'same-bytes' } });
    const other = await addDeployment(store, { target: 's3', options, baseModel: 'other/model' });
    await expect(playStages(store, other, { env: KEYS })).rejects.toThrow('has other bytes, and is not overwritten');
  });
});
