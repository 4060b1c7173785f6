/** Deployments whose worker is killed in every stage, and where their keys are afterwards: nowhere. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';

import { deploymentWorkflowId, outboundQueue, storeQueue } from '../../core/queues.ts';
import { listDeployments, readDeployment, stateOf, type RecordedDeployment } from '../../store/records/deployments.ts';
import type { FileStore } from '../../store/bytes/file-store.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { readIntended } from '../../store/records/intended.ts';
import { nodeFlags } from '../../workers/process/module-path.ts';
import type { deployCheckpoint } from '../../workflows/deploy.ts';
import { temporaryProject } from '../cli/fixture-store.ts';
import { runCli } from '../cli/run-cli.ts';
import { makeRun } from '../store/records/made-run.ts';
import { ECHOED, startFireworks } from '../outbound/deploy/fireworks-stand-in.ts';
import { startHub } from '../outbound/deploy/hub-stand-in.ts';
import { addDeployment, KEYS, temporaryStore } from '../outbound/deploy/made-deployment.ts';
import { ENDPOINT, startTogether } from '../outbound/deploy/together-stand-in.ts';
import { startStandIn, type GivenRequest, type StandIn } from '../outbound/stand-in.ts';
import { createGate, eventually } from './harness.ts';

let connection: Connection;
let client: Client;
beforeAll(async () => {
  connection = await Connection.connect({ address: inject('temporalAddress') });
  client = new Client({ connection });
});
afterAll(() => connection.close());

/** Which request of a stage is held after it was done: its answer never comes. */
const HELD: Readonly<Record<string, Readonly<Record<string, (request: GivenRequest) => boolean>>>> = {
  huggingface: {
    repository: ({ path }) => path === '/api/repos/create',
    upload: ({ path }) => path.endsWith('/commit/main'),
    tag: ({ path, method }) => method === 'POST' && path.includes('/tag/'),
    proof: ({ path }) => path.includes('/paths-info/'),
  },
  together: {
    register: ({ path, method }) => method === 'POST' && path === '/v1/models',
    wait: ({ path }) => path.startsWith('/v1/jobs/'),
    attach: ({ path, method }) => method === 'POST' && path.endsWith('/adapters'),
    proof: ({ path }) => path.startsWith('/proof/'),
  },
  fireworks: {
    register: ({ path, method }) => method === 'POST' && path.endsWith('/models'),
    upload: ({ method }) => method === 'PUT',
    validate: ({ path }) => path.endsWith(':validateUpload'),
    load: ({ path, method }) => method === 'POST' && path.endsWith('/deployedModels'),
    proof: ({ path }) => path.startsWith('/proof/'),
  },
};

/** `together-wait`: the deployment whose worker is killed in that stage. */
const NAMES = Object.entries(HELD).flatMap(([target, stages]) =>
  Object.keys(stages).map((stage) => `${target}-${stage}`),
);

/** Holds one request of each deployment, until they are released. */
function createHold() {
  const gate = createGate();
  const held = new Set<string>();
  let isOver = false;
  const hold = (name: string | undefined, request: GivenRequest): Promise<void> | undefined => {
    const [target = '', stage = ''] = name?.split('-') ?? [];
    if (isOver || name === undefined || held.has(name) || HELD[target]?.[stage]?.(request) !== true) return undefined;
    held.add(name);
    return gate.opened;
  };
  const release = (): void => {
    isOver = true;
    gate.open();
  };
  return { hold, held, release };
}

const named = (text: string): string | undefined => NAMES.find((name) => text.includes(name));

async function startTargets({ hold }: ReturnType<typeof createHold>, byId: ReadonlyMap<string, string>) {
  const hub = await startHub({
    key: KEYS.HF_TOKEN,
    hold: (request) => hold(named(`${request.path} ${request.body.toString()}`), request),
  });
  const together = await startTogether({
    key: KEYS.TOGETHER_API_KEY,
    hold: (request) => {
      const job = together.jobs.find(({ id }) => request.path === `/v1/jobs/${id}`);
      return hold(named(job?.upload.model_name ?? request.body.toString()), request);
    },
  });
  const fireworks = await startFireworks({
    key: KEYS.FIREWORKS_API_KEY,
    hold: (request) => hold(named(`${request.path} ${request.body.toString()}`), request),
  });
  const proofs = await startStandIn({
    key: '',
    routes: [{ method: 'POST', path: /^\/proof\/.+$/, isOpen: true, answer: () => ({}) }],
    hold: (request) => hold(byId.get(request.path.slice('/proof/'.length)), request),
  });
  const all: StandIn[] = [hub, together, fireworks, proofs];
  onTestFinished(async () => void (await Promise.all(all.map((each) => each.close()))));
  const env = { HF_ENDPOINT: hub.url, TOGETHER_BASE_URL: `${together.url}/v1`, FIREWORKS_BASE_URL: fireworks.url };
  return { hub, together, fireworks, proofs, env };
}

interface WorkerOptions {
  readonly taskQueue: string;
  readonly storeUri: string;
  /** Address that the proof asks. */
  readonly proof: string;
  readonly env: Readonly<Record<string, string>>;
  /** Gets what it prints. */
  readonly logs: string[];
}

function spawnWorker({ taskQueue, storeUri, proof, env, logs }: WorkerOptions): ChildProcess {
  const args = [inject('temporalAddress'), taskQueue, inject('workflowBundle'), storeUri, proof];
  const program = fileURLToPath(new URL('deploy-worker.ts', import.meta.url));
  const child = spawn(process.execPath, [...nodeFlags(), program, ...args], {
    env: { ...process.env, ...KEYS, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => void logs.push(String(chunk)));
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function addNamed(store: FileStore, name: string): Promise<RecordedDeployment> {
  const adapter = await store.putBlob(new TextEncoder().encode(`adapter of ${name}`));
  if (name.startsWith('huggingface'))
    return addDeployment(store, { target: 'huggingface', options: { repo: `me/${name}` }, adapter });
  if (name.startsWith('together')) {
    const options = { repo: `me/source-of-${name.replace('-', '')}`, modelName: name, endpoint: ENDPOINT.id };
    return addDeployment(store, { target: 'together', options, adapter });
  }
  const options = { account: 'me', modelName: name, deployment: 'my-qwen' };
  return addDeployment(store, { target: 'fireworks', options, adapter, baseModel: 'accounts/fireworks/models/base' });
}

test('a worker that is killed in every stage makes nothing twice; keys are in no history, log, record or message', async () => {
  const store = temporaryStore();
  const storeId = await store.id();
  const holding = createHold();
  const byId = new Map<string, string>();
  const targets = await startTargets(holding, byId);
  const taskQueue = `deploy/${randomUUID()}`;
  const logs: string[] = [];
  const startWorker = (): ChildProcess => {
    const args = [inject('temporalAddress'), taskQueue, inject('workflowBundle'), store.uri, targets.proofs.url];
    const program = fileURLToPath(new URL('deploy-worker.ts', import.meta.url));
    const env = { ...process.env, ...KEYS, ...targets.env };
    const child = spawn(process.execPath, [...nodeFlags(), program, ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => void logs.push(String(chunk)));
    onTestFinished(() => void child.kill('SIGKILL'));
    return child;
  };
  const start = ({ id, stages }: RecordedDeployment) =>
    client.workflow.start<typeof deployCheckpoint>('deployCheckpoint', {
      workflowId: deploymentWorkflowId(storeId, 'demo', id),
      taskQueue,
      args: [{ run: 'demo', id, stages, queue: outboundQueue(storeId) }],
    });

  const deployments = await Promise.all(NAMES.map((name) => addNamed(store, name)));
  for (const [index, { id }] of deployments.entries()) byId.set(id, NAMES[index]!);
  const first = startWorker();
  const handles = await Promise.all(deployments.map(start));
  await eventually(
    async () => holding.held.size,
    (count) => count === NAMES.length,
  );
  first.kill('SIGKILL');
  await once(first, 'exit');
  holding.release();
  startWorker();
  await Promise.all(handles.map((handle) => handle.result()));

  const { hub, together, fireworks, proofs } = targets;
  expect([hub, together, fireworks, proofs].flatMap(({ violations }) => violations)).toEqual([]);
  expect([...hub.repos].map(([repo, { commits, tags }]) => [repo, commits.length, tags.size])).toEqual(
    [...hub.repos.keys()].map((repo) => [repo, 2, 1]),
  );
  expect([hub.repos.size, [...hub.uploads.values()]]).toEqual([8, Array.from({ length: 8 }, () => 1)]);
  const ofTogether = NAMES.filter((name) => name.startsWith('together'));
  expect(together.jobs.map(({ upload }) => upload.model_name).toSorted()).toEqual(ofTogether.toSorted());
  expect(together.adapters.toSorted()).toEqual(ofTogether.map((name) => `${ENDPOINT.name}:me/${name}`).toSorted());
  const ofFireworks = NAMES.filter((name) => name.startsWith('fireworks')).map((name) => `accounts/me/models/${name}`);
  expect(fireworks.models.map(({ name }) => name).toSorted()).toEqual(ofFireworks.toSorted());
  expect(fireworks.loaded.map(({ model }) => model).toSorted()).toEqual(ofFireworks.toSorted());
  for (const { id } of deployments) expect(stateOf((await readDeployment(store, 'demo', id))!)).toBe('deployed');

  const echoed = await addDeployment(store, {
    target: 'fireworks',
    options: { account: 'me', modelName: ECHOED },
    baseModel: 'accounts/fireworks/models/base',
  });
  const refused = await start(echoed);
  await expect(refused.result()).rejects.toMatchObject({
    cause: { cause: { message: expect.stringContaining('cannot create it (Bearer [key])') as string } },
  });
  const histories = await Promise.all([...handles, refused].map((handle) => handle.fetchHistory()));
  const everything = [
    JSON.stringify(histories, asText),
    ...logs,
    ...textsBelow(store.uri.slice('file://'.length)),
  ].join('\n');
  expect(everything).toContain('finished a stage of a deployment');
  for (const secret of [...Object.values(KEYS), 'secret-of-storage']) expect(everything).not.toContain(secret);
});

/** Payloads are bytes. */
const asText = (_: string, value: unknown): unknown =>
  value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value;

function textsBelow(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'));
}

test('temper deploy starts the workflow or joins it, follows it, and deploys again when it is asked to', async () => {
  const project = await temporaryProject();
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
  expect([...(await readIntended(store))]).toContainEqual(['demo@2', 'it is being deployed to huggingface']);
  const storeId = await store.id();
  const handle = client.workflow.getHandle(deploymentWorkflowId(storeId, 'demo', recorded!.id));
  expect(await (await handle.describe()).staticSummary()).toBe('demo@2 to huggingface');
  spawnWorker({
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
  const listed = JSON.parse((await run('deployments', 'demo', '--json')).stdout) as object[];
  expect(listed).toMatchObject([
    { policy: 'demo@2', target: 'huggingface', state: 'deployed', stage: null, proof: { verdict: 'same-bytes' } },
    { state: 'deployed', made: { tag: { revision: 'step2' } } },
    { options: { repo: 'me/open', public: true }, proof: null, place: `${hub.url}/me/open` },
  ]);
  expect((await run('deployments')).stdout).toContain('same-bytes');
});

test('a deployment that fails says in which stage and why', async () => {
  const project = await temporaryProject();
  const store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { steps: 2 });
  const hub = await startHub({ key: 'another key' });
  onTestFinished(() => hub.close());
  const env = { TEMPORAL_ADDRESS: inject('temporalAddress') };
  const storeId = await store.id();
  spawnWorker({
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
      /^temper: demo@2 was not deployed to huggingface \(stage repository\): the Hugging Face hub refused .* answered 401: wrong key\); check the key in HF_TOKEN, and its rights$/,
    ),
  ]);
  const listed = (await runCli(project, ['deployments', 'demo'], { env })).stdout;
  expect(listed).toContain('failed, repository');
});
