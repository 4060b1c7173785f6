/** `temper deploy` on a Temporal server, with a worker and a stand-in of the Hugging Face hub. */
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';

import { openProject } from '../../cli/project.ts';
import { deploymentWorkflowId, storeQueue } from '../../core/names/queues.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { listDeployments } from '../../store/records/production/deployments.ts';
import { neededCheckpoints } from '../../store/records/retention/live-blobs.ts';
import { readStoreIndex } from '../../store/records/retention/store-index.ts';
import { temporaryProject } from '../cli/fixture-store.ts';
import { runCli } from '../cli/run-cli.ts';
import { startHub } from '../outbound/deploy/hub-stand-in.ts';
import { KEYS } from '../outbound/deploy/made-deployment.ts';
import { makeRun } from '../store/records/made-run.ts';
import { spawnDeployWorker } from './spawn-deploy-worker.ts';

let connection: Connection;
let client: Client;
beforeAll(async () => {
  connection = await Connection.connect({ address: inject('temporalAddress') });
  client = new Client({ connection });
});
afterAll(() => connection.close());

test('temper deploy starts the workflow or joins it, follows it, and deploys again when it is asked to', async () => {
  const project = temporaryProject();
  const store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { steps: 2, evals: { 2: 0.5 } });
  const hub = await startHub({ key: KEYS.HF_TOKEN });
  onTestFinished(() => hub.close());
  const env = { TEMPORAL_ADDRESS: inject('temporalAddress') };
  const run = (...words: string[]) => runCli(project, words, { env });
  const DEPLOY = ['deploy', 'demo@2', '--to', 'huggingface', '--repo', 'me/demo', '--base-model', 'base/model'];
  const begun = await run(...DEPLOY);
  expect([begun.exitCode, begun.stdout]).toEqual([
    0,
    expect.stringContaining('demo@2 is being deployed to huggingface'),
  ]);
  const [recorded] = await listDeployments(store, 'demo');
  expect(recorded).toMatchObject({
    target: 'huggingface',
    prompts: 8,
    stages: ['repository', 'upload', 'tag', 'proof'],
  });
  expect(recorded?.card).toContain('base_model: "base/model"\nlibrary_name: "peft"');
  // Weights that are being deployed are kept.
  const needed = neededCheckpoints(await readStoreIndex(store));
  expect(needed.get('demo@2')).toBe('it is being deployed to huggingface');
  const storeId = await store.id();
  const handle = client.workflow.getHandle(deploymentWorkflowId(storeId, 'demo', recorded!.id));
  expect(await (await handle.describe()).staticSummary()).toBe('demo@2 to huggingface');
  spawnDeployWorker({
    taskQueue: storeQueue(storeId, 'temper'),
    storeUri: store.uri,
    proof: '',
    env: { HF_ENDPOINT: hub.url },
    logs: [],
  });
  const done = await run(...DEPLOY, '--wait');
  expect([done.exitCode, done.stdout]).toEqual([
    0,
    `demo@2 is deployed to huggingface: ${hub.url}/me/demo\nproof   same-bytes: the files there are those of the store`,
  ]);
  expect(await run(...DEPLOY)).toEqual({ exitCode: 0, stdout: done.stdout, stderr: '' });
  expect(hub.repos.get('me/demo')?.commits).toHaveLength(2);
  expect((await run(...DEPLOY, '--again', '--wait', '--json')).exitCode).toBe(0);
  expect(hub.repos.get('me/demo')?.commits).toHaveLength(3);
  const unproven = await run(...DEPLOY.with(5, 'me/open'), '--public', '--no-proof', '--wait');
  expect(unproven.stdout).toContain('proof   not asked for');
  const listed = JSON.parse((await run('deploy', 'list', 'demo', '--json')).stdout) as object[];
  expect(listed).toMatchObject([
    { policy: 'demo@2', target: 'huggingface', state: 'deployed', stage: null, proof: { verdict: 'same-bytes' } },
    { state: 'deployed', made: { tag: { revision: 'step2' } } },
    { options: { repo: 'me/open', public: true }, proof: null, place: `${hub.url}/me/open` },
  ]);
  expect((await run('deploy', 'list')).stdout).toContain('same-bytes');
  // A script does not wait for the worker.
  vi.stubEnv('TEMPORAL_ADDRESS', env.TEMPORAL_ADDRESS);
  onTestFinished(() => void vi.unstubAllEnvs());
  const { deploy, deployList } = openProject({ folder: project });
  const input = { checkpoint: 'demo@2', to: 'huggingface', repo: 'me/script', baseModel: 'base/model' } as const;
  expect(await deploy(input)).toMatchObject({ policy: 'demo@2', state: 'running' });
  await expect
    .poll(async () => (await deployList({ run: 'demo' })).at(-1)?.state, { timeout: 300_000 })
    .toBe('deployed');
  expect(await deploy(input)).toMatchObject({ state: 'deployed' });
  expect(hub.repos.get('me/script')?.commits).toHaveLength(2);
});

test('a deployment that fails says in which stage and why', async () => {
  const project = temporaryProject();
  const store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { steps: 2 });
  const hub = await startHub({ key: 'another key' });
  onTestFinished(() => hub.close());
  const env = { TEMPORAL_ADDRESS: inject('temporalAddress') };
  const storeId = await store.id();
  spawnDeployWorker({
    taskQueue: storeQueue(storeId, 'temper'),
    storeUri: store.uri,
    proof: '',
    env: { HF_ENDPOINT: hub.url },
    logs: [],
  });
  const words = [
    'deploy',
    'demo@2',
    '--to',
    'huggingface',
    '--repo',
    'me/demo',
    '--base-model',
    'base/model',
    '--wait',
  ];
  const failed = await runCli(project, words, { env });
  expect([failed.exitCode, failed.stderr]).toEqual([
    1,
    expect.stringMatching(
      // It may have waited for its worker, and said so.
      /^temper: demo@2 was not deployed to huggingface \(stage repository\): the Hugging Face hub refused .* answered 401: wrong key\); check the key in HF_TOKEN, and its rights$/m,
    ),
  ]);
  const listed = (await runCli(project, ['deploy', 'list', 'demo'], { env })).stdout;
  expect(listed).toContain('failed, repository');
});
