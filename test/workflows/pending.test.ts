import { randomUUID } from 'node:crypto';

import { ApplicationFailure, heartbeat } from '@temporalio/activity';
import { Client, Connection } from '@temporalio/client';
import { expect, inject, onTestFinished, test } from 'vitest';

import { follow } from '../../cli/deploy/deploy.ts';
import type { PendingActivity } from '../../operations/pending/pending-activity.ts';
import { readPending } from '../../operations/pending/read-pending.ts';
import { worstWait } from '../../operations/pending/under-way.ts';
import { findRun } from '../../operations/show-run.ts';
import { deploymentWorkflowId, outboundQueue, runWorkflowId } from '../../core/names/queues.ts';
import { runKey } from '../../store/layout.ts';
import type { TemporalClient } from '../../workers/connection/connection.ts';
import { addDeployment } from '../outbound/deploy/made-deployment.ts';
import { temporaryFolder, temporaryStore } from '../temporary-folder.ts';
import { bed } from './bed.ts';
import { createGate, eventually, STORE_ID, type StartedRun } from './harness.ts';

const store = { id: () => Promise.resolve(STORE_ID), read: () => Promise.resolve(new Uint8Array()) };

function serverOf(client: Client): TemporalClient {
  const connection = client.connection as Connection;
  return { client, connection, address: '', namespace: 'default', close: () => Promise.resolve() };
}

function pendingOf({ client, input }: StartedRun, isRight: (pending: PendingActivity) => boolean) {
  const ask = () => readPending(serverOf(client), { store, run: input.config.run }, 2000);
  return eventually(ask, (pending) => pending.some(isRight)).then((pending) => ({
    found: pending.find(isRight)!,
    reason: worstWait(pending)?.text,
  }));
}

test('a queue that nobody polls is named, with what to start', async () => {
  await bed.play({ gpuWorker: false }, async (started) => {
    const { found, reason } = await pendingOf(
      started,
      ({ activity, pollers }) => activity === 'initialise' && pollers === 0,
    );
    const { gpu } = started.input.queues;
    expect(found).toMatchObject({ attempt: 1, queue: gpu, lastFailure: null, reason: expect.stringContaining(gpu) });
    expect(found.text).toMatch(
      /^initialise on queue gpu\/\S+: waiting for a worker, since 2\S+: no worker polls queue gpu/,
    );
    expect(reason).toBe(`initialise: no worker polls queue ${gpu}; start a GPU worker, or temper dev`);
    expect(Date.parse(found.since!)).toBeLessThanOrEqual(Date.now());
  });
});

test('a judge that limits its rate is named as what a group waits for', async () => {
  const gate = createGate();
  const waiting = { attempts: 1, reason: '429 slow down', since: '2026-01-01T00:00:00.000Z', nextTryAt: null };
  const before = async (name: string) => {
    if (name !== 'judgeGroup') return;
    heartbeat({ step: 1, part: '0', judge: 'openai/gpt-5-mini', waiting });
    await gate.opened;
  };
  await bed.play({ fake: { before }, config: { judge: 'openai/gpt-5-mini' } }, async (started) => {
    const { found, reason } = await pendingOf(started, (pending) => pending.reason?.includes('429') ?? false);
    gate.open();
    expect(found.text).toContain(
      'step 1: judged by openai/gpt-5-mini; waiting for the judge openai/gpt-5-mini, since 2026-01-01T00:00:00.000Z: 429 slow down',
    );
    expect(reason).toBe('judgeGroup: waiting for the judge openai/gpt-5-mini: 429 slow down');
  });
});

test.each([
  ['StoreUnavailable', 'the store must be able to write, got ENOSPC; free space'],
  ['LaterVersion', 'the input of the activity train was sent by a later version of Temper (x: y); upgrade this worker'],
])(
  'what fails again and again is named with its type (%s), the count of tries and the next one',
  async (type, message) => {
    const before = (name: string) => {
      if (name === 'train') throw ApplicationFailure.retryable(message, type);
    };
    await bed.play({ fake: { before } }, async (started) => {
      const isRight = ({ attempt, nextTryAt }: PendingActivity) => attempt > 2 && nextTryAt !== null;
      const { found, reason } = await pendingOf(started, isRight);
      expect(found).toMatchObject({ activity: 'train', lastFailure: `${type}: ${message}` });
      expect(found.text).toMatch(/^train, attempt \d+ on queue \S+: retry in \d+ s; last failure: /);
      expect(reason).toMatch(/^train, attempt \d+: /);
      expect(reason!.replace(/, attempt \d+/, '')).toBe(`train: last failure: ${type}: ${message}`);
    });
  },
);

test('a mistake in code, which is tried again without end, is named with what to do from the third attempt on', async () => {
  const before = (name: string) => {
    if (name === 'prepare') throw new TypeError('agents.map is not a function');
  };
  await bed.play({ fake: { before } }, async (started) => {
    const { found, reason } = await pendingOf(started, ({ attempt }) => attempt > 2);
    expect(found).toMatchObject({ activity: 'prepare', lastFailure: 'TypeError: agents.map is not a function' });
    expect(reason).toMatch(
      /^prepare, attempt \d+: last failure: TypeError: agents\.map is not a function; it is tried again without end: if its code is at fault, correct it and restart its worker, .* temper stop RUN --now$/,
    );
    expect(found.text).toContain('temper stop RUN --now');
  });
});

test('an engine that does not answer is named by those who wait for it', async () => {
  const gate = createGate();
  const nextTryAt = '2026-01-01T00:00:09.000Z';
  const waiting = { attempts: 3, reason: '429: slow down', since: '2026-01-01T00:00:00.000Z', nextTryAt };
  const resources = { settingUp: 2, ending: 1 };
  const before = async (name: string) => {
    if (name !== 'rollout') return;
    heartbeat({ step: 1, part: '0', done: 1, of: 4, calls: 9, waiting, groups: { done: 2, of: 20 }, resources });
    await gate.opened;
  };
  await bed.play({ fake: { before } }, async (started) => {
    const { found, reason } = await pendingOf(started, ({ text }) => text.includes('waiting for the engine'));
    expect(found).toMatchObject({ activity: 'rollout', nextTryAt });
    expect(found.text).toContain(
      'step 1: 2 of 20 groups done, 1 of 4 attempts played, resources are being set up for 2 and ended for 1',
    );
    expect(found.text).toContain(
      '3 attempts are waiting for the engine, since 2026-01-01T00:00:00.000Z: 429: slow down',
    );
    expect(reason).toBe('rollout: waiting for the engine: 429: slow down');
    gate.open();
  });
});

test('a GPU worker tells what it does with a step', async () => {
  const gate = createGate();
  const before = async (name: string) => {
    if (name !== 'train') return;
    heartbeat({ step: 1, phase: 'wait', since: '2026-01-01T00:00:00+00:00' });
    await gate.opened;
  };
  await bed.play({ fake: { before } }, async (started) => {
    const { found } = await pendingOf(started, ({ text }) => text.includes('waiting for the device'));
    expect(found.text).toContain('step 1: waiting for the device since 2026-01-01T00:00:00+00:00');
    gate.open();
  });
});

test('a run that no worker decides is named, also before its store has anything of it', async () => {
  await bed.play({}, async ({ client, input }) => {
    const own = temporaryStore();
    const run = `unpolled-${randomUUID()}`;
    const taskQueue = `nobody/${run}`;
    const handle = await client.workflow.start('trainRun', {
      workflowId: runWorkflowId(await own.id(), run),
      taskQueue,
      args: [input],
    });
    const pending = await eventually(
      () => readPending(serverOf(client), { store: own, run }, 2000),
      ({ length }) => length > 0,
    );
    const env = { TEMPORAL_ADDRESS: inject('temporalAddress') };
    const place = { project: temporaryFolder(), env, store: () => Promise.resolve(own) };
    const shown = () => findRun(place as never, run).catch(String);
    expect(await shown()).toContain(`${run} has not begun; it waits for workflow: no worker runs workflows on queue`);
    await own.replace(runKey(run), new TextEncoder().encode('{'));
    expect(await shown()).toContain(`${runKey(run)} is not valid JSON`);
    await handle.terminate();
    expect(pending[0]).toMatchObject({ activity: 'workflow', queue: taskQueue, pollers: 0 });
    expect(worstWait(pending)?.text).toBe(
      `workflow: no worker runs workflows on queue ${taskQueue}; start temper dev or temper worker`,
    );
  });
});

test('who follows a deployment is told that no worker runs it, and hears its end if its workflow is ended', async () => {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  onTestFinished(() => connection.close());
  const [client, deployed, taskQueue] = [new Client({ connection }), temporaryStore(), `nobody/${randomUUID()}`];
  const deployment = await addDeployment(deployed, { target: 's3', options: { bucket: 's3://bucket' } });
  const { id, stages } = deployment;
  const [storeId, lines] = [await deployed.id(), [] as string[]];
  const handle = await client.workflow.start('deployCheckpoint', {
    workflowId: deploymentWorkflowId(storeId, 'demo', id),
    taskQueue,
    args: [{ run: 'demo', id, stages, queue: outboundQueue(storeId) }],
  });
  const context = { output: { errorLine: (line: string) => lines.push(line) }, signal: new AbortController().signal };
  const end = follow(context as never, serverOf(client), deployed, deployment, 20).catch(String);
  await eventually(
    () => Promise.resolve(lines.length),
    (told) => told > 0,
  );
  await handle.terminate();
  expect(await end).toContain('its workflow has ended (terminated); the same command goes on with the next stage');
  expect(lines).toEqual([
    `waiting for workflow: no worker runs workflows on queue ${taskQueue}; start temper dev or temper worker`,
  ]);
});
