/** Deployments whose worker is killed in every stage, and where their keys are afterwards: nowhere. */
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';

import { deploymentWorkflowId, outboundQueue } from '../../core/names/queues.ts';
import {
  readDeployment,
  stateOfDeployment,
  type RecordedDeployment,
} from '../../store/records/production/deployments.ts';
import type { FileStore } from '../../store/bytes/file-store.ts';
import type { deployCheckpoint } from '../../workflows/deploy.ts';
import { ECHOED, startFireworks } from '../outbound/deploy/fireworks-stand-in.ts';
import { startHub } from '../outbound/deploy/hub-stand-in.ts';
import { addDeployment, KEYS } from '../outbound/deploy/made-deployment.ts';
import { temporaryStore } from '../temporary-folder.ts';
import { ENDPOINT, startTogether } from '../outbound/deploy/together-stand-in.ts';
import { startWandb } from '../outbound/track/wandb-stand-in.ts';
import { startStandIn, type GivenRequest, type StandIn } from '../outbound/stand-in.ts';
import { createGate, eventually } from './harness.ts';
import { spawnDeployWorker } from './spawn-deploy-worker.ts';

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
  wandb: {
    upload: ({ body }) => body.includes('CommitArtifact'),
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
  const wandb = await startWandb({
    hold: (request) => hold(wandb.artifacts.find(({ id }) => request.body.includes(`"${id}"`))?.name, request),
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
  const all: StandIn[] = [hub, together, wandb, fireworks, proofs];
  onTestFinished(async () => void (await Promise.all(all.map((each) => each.close()))));
  const env = {
    HF_ENDPOINT: hub.url,
    TOGETHER_BASE_URL: `${together.url}/v1`,
    FIREWORKS_BASE_URL: fireworks.url,
    WANDB_BASE_URL: wandb.url,
    WANDB_API_KEY: wandb.key,
  };
  return { hub, together, wandb, fireworks, proofs, env };
}

async function addNamed(store: FileStore, name: string): Promise<RecordedDeployment> {
  const adapter = await store.putBlob(new TextEncoder().encode(`adapter of ${name}`));
  if (name.startsWith('huggingface'))
    return addDeployment(store, { target: 'huggingface', options: { repo: `me/${name}` }, adapter });
  if (name.startsWith('together')) {
    const options = { repo: `me/source-of-${name.replace('-', '')}`, modelName: name, endpoint: ENDPOINT.id };
    return addDeployment(store, { target: 'together', options, adapter });
  }
  if (name.startsWith('wandb'))
    return addDeployment(store, {
      target: 'wandb',
      options: { entity: 'me', project: 'games', modelName: name },
      adapter,
    });
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
  const startWorker = () =>
    spawnDeployWorker({
      taskQueue,
      storeUri: store.uri,
      proof: targets.proofs.url,
      env: targets.env,
      logs,
    });
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

  const { hub, together, wandb, fireworks, proofs } = targets;
  expect([hub, together, wandb, fireworks, proofs].flatMap(({ violations }) => violations)).toEqual([]);
  expect([...hub.repos].map(([repo, { commits, tags }]) => [repo, commits.length, tags.size])).toEqual(
    [...hub.repos.keys()].map((repo) => [repo, 2, 1]),
  );
  expect([hub.repos.size, [...hub.uploads.values()]]).toEqual([8, Array.from({ length: 8 }, () => 1)]);
  const ofTogether = NAMES.filter((name) => name.startsWith('together'));
  expect(together.jobs.map(({ upload }) => upload.model_name).toSorted()).toEqual(ofTogether.toSorted());
  expect(together.adapters.toSorted()).toEqual(ofTogether.map((name) => `${ENDPOINT.name}:me/${name}`).toSorted());
  expect(wandb.artifacts.map(({ name, state }) => `${name} ${state}`).toSorted()).toEqual([
    'wandb-proof COMMITTED',
    'wandb-upload COMMITTED',
  ]);
  const ofFireworks = NAMES.filter((name) => name.startsWith('fireworks')).map((name) => `accounts/me/models/${name}`);
  expect(fireworks.models.map(({ name }) => name).toSorted()).toEqual(ofFireworks.toSorted());
  expect(fireworks.loaded.map(({ model }) => model).toSorted()).toEqual(ofFireworks.toSorted());
  for (const { id } of deployments)
    expect(stateOfDeployment((await readDeployment(store, 'demo', id))!)).toBe('deployed');

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
  const basic = Buffer.from(`api:${wandb.key}`).toString('base64');
  for (const secret of [...Object.values(KEYS), wandb.key, basic, 'secret-of-storage'])
    expect(everything).not.toContain(secret);
});

/** Payloads are bytes. */
const asText = (_: string, value: unknown): unknown =>
  value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value;

function textsBelow(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'));
}
