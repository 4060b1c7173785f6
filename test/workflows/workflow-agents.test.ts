/** Agents that are workflows of the user's, on a worker of the user's. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';

import type { Scenario } from '../../play/agent.ts';
import type { Attempts } from '../../play/play-attempts.ts';
import type { WorkflowAgentOptions } from '../../workers/workflow-agents/options.ts';
import { workflowAgent } from '../../workers/workflow-agents/workflow-agent.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { codeCommand } from '../compiled.ts';
import { startFakeEngine, type FakeEngine } from '../fake-engine.ts';
import { markOf, memoryJournal, prepareAttempts, type PlayOptions, type TestRollout } from '../play/play.ts';
import { eventually, quietRuntime } from './harness.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const address = inject('temporalAddress');
const WORKFLOWS = fileURLToPath(new URL('user-workflows.ts', import.meta.url));
/** None of these is about time. */
const ROLLOUT = { attemptTimeoutMs: 600_000, callTimeoutMs: 5000 };
const LOOKED_UP = { name: 'lookUp', arguments: '{"order":"7"}' };

let engine: FakeEngine;
let connection: Connection;
let native: NativeConnection;
let code: string;
let client: Client;
/** Polls as long as the tests run. */
let worker: { taskQueue: string; close(): Promise<void> };

beforeAll(async () => {
  quietRuntime();
  const logger = new DefaultLogger('WARN');
  const bundling = bundleWorkflowCode({
    workflowsPath: WORKFLOWS,
    workflowInterceptorModules: [WORKFLOWS],
    logger,
  });
  engine = await startFakeEngine({
    answer: ({ messages, tools, seed }) =>
      tools !== undefined && messages.at(-1)?.role !== 'tool'
        ? { content: null, toolCalls: [{ id: 'call_1', type: 'function', function: LOOKED_UP }] }
        : String(seed % 1000),
  });
  connection = await Connection.connect({ address });
  native = await NativeConnection.connect({ address });
  client = new Client({ connection });
  ({ code } = await bundling);
  const taskQueue = `support/${randomUUID()}`;
  const polling = await createWorker(taskQueue);
  const running = polling.run();
  worker = {
    taskQueue,
    async close() {
      polling.shutdown();
      await running;
    },
  };
});
afterAll(async () => {
  await worker.close();
  await engine.close();
  await connection.close();
  await native.close();
});
beforeEach(() => {
  engine.failWhen(() => null);
  engine.executed.length = 0;
});

type Options = Partial<WorkflowAgentOptions<Scenario>>;

/** A run of one group: its attempts are played again by the same journal. */
function openRun(workflow: string, options: Options = {}) {
  const run = `run-${randomUUID()}`;
  const journal = memoryJournal();
  const agent = workflowAgent({
    name: 'support',
    scenarios: [],
    workflow,
    taskQueue: worker.taskQueue,
    address,
    reward: () => 1,
    ...options,
  });
  const prepare = (more: PlayOptions = {}): Attempts => {
    const isPlayedAgain = (): boolean => true;
    const played = { address: { storeId: 'store', run, play: '0.4.0' }, isPlayedAgain };
    const rollout = { ...ROLLOUT, ...more.rollout };
    return prepareAttempts(engine, agent.rollout as TestRollout, { journal, run: played, ...more, rollout });
  };
  return {
    run,
    prepare,
    play: (more: PlayOptions = {}) => prepare(more).play(),
    handle: client.workflow.getHandle(`attempt/store/${run}/0.4.0.0`),
  };
}

function createWorker(taskQueue: string): Promise<Worker> {
  return Worker.create({ connection: native, taskQueue, workflowBundle: { code }, activities: { askByHttp } });
}

async function askByHttp(baseURL: string, key: string, content: string): Promise<string> {
  const response = await fetch(`${baseURL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content }] }),
  });
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return choices[0]!.message.content;
}

const statusOf = async ({ handle }: ReturnType<typeof openRun>): Promise<string> =>
  (await handle.describe()).status.name;

const APPROVED: Options = {
  interact: ({ workflow }) => workflow.signal('approve', 'ada'),
  reward: async (result, { history, scenario }) => {
    const told = (await history).map(({ kind, name }) => `${kind} ${name}`);
    const { approvedBy } = result as { approvedBy: string };
    return { reward: Number(approvedBy === 'ada'), metrics: { entries: told.length, id: scenario.id.length } };
  },
};

test('the policy answers what the workflow asks, with the tokens that the plain transport has', async () => {
  const run = openRun('support', APPROVED);
  const [record] = await run.play();
  expect(record).toMatchObject({ status: 'ok', reward: 1, metrics: { toolCalls: 1, entries: 3, id: 3 } });
  const input = [{ role: 'user', content: 'Refund one' }];
  const tools = [
    {
      type: 'function' as const,
      name: 'lookUp',
      description: 'Looks an order up.',
      parameters: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
      strict: true,
    },
  ];
  const transport: TestRollout = async ({ openai, model }) => {
    const asked = { model, instructions: 'You help.', tools };
    const { output } = await openai.responses.create({ ...asked, input: input as never });
    const result = { type: 'function_call_output', call_id: 'call_1', output: 'paid' };
    await openai.responses.create({ ...asked, input: [...input, ...output, result] as never });
    return 1;
  };
  const [plain] = await prepareAttempts(engine, transport, { rollout: ROLLOUT }).play();
  expect(record!.calls).toEqual(plain!.calls);
  expect(record!.calls).toHaveLength(2);
  const { memo } = await run.handle.describe();
  expect(memo).toMatchObject({ temper: { attempt: 0 } });
});

test('an attempt that was discarded takes its workflow up again, and asks nothing twice', async () => {
  const [undisturbed] = await openRun('support', APPROVED).play();
  engine.executed.length = 0;
  const run = openRun('support', APPROVED);
  engine.failWhen(() => (engine.executed.length === 1 ? { status: 503 } : null));
  expect((await markOf(run.play({ rollout: { callRetryBudgetMs: 100 } }))).type).toBe('EngineFailed');
  expect(await statusOf(run)).toBe('RUNNING');
  const { runId } = await run.handle.describe();
  engine.failWhen(() => null);
  const [record] = await run.play();
  expect(record).toEqual(undisturbed);
  // Its workflow has ended by now: another try reads its result.
  expect((await run.play())[0]).toEqual(undisturbed);
  expect(engine.executed).toHaveLength(2);
  expect((await run.handle.describe()).runId).toBe(runId);
});

test('workers are killed on both sides, and the bytes are those of an undisturbed attempt', async () => {
  const approved: Options = { ...APPROVED, reward: () => 1 };
  const undisturbed = await openRun('support', approved).play();
  engine.executed.length = 0;
  const folder = temporaryFolder();
  const codePath = join(folder, 'bundle.js');
  await writeFile(codePath, code);
  const taskQueue = `killed/${randomUUID()}`;
  const run = openRun('support', { ...approved, taskQueue });
  const theirs = startProcess('user-worker.ts', [address, taskQueue, codePath]);
  const ours = startProcess('workflow-player.ts', [folder, engine.url, address, taskQueue, run.run]);
  expect(await once(ours, 'exit')).toEqual([null, 'SIGKILL']);
  expect(await statusOf(run)).toBe('RUNNING');
  theirs.kill('SIGKILL');
  const next = await createWorker(taskQueue);
  const playing = run.prepare({ segments: await new FileStore(folder).openJournal('journal') }).play();
  expect(await next.runUntil(playing)).toEqual(undisturbed);
  expect(engine.executed).toHaveLength(2);
});

function startProcess(file: string, args: readonly string[]): ChildProcess {
  const [node = '', ...program] = codeCommand(`test/workflows/${file}`);
  return spawn(node, [...program, ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
}

test('children, identical requests at once and a continued workflow have the same bytes in each run', async () => {
  const runs = [openRun('tree'), openRun('tree')];
  const [[first], [second]] = [await runs[0]!.play(), await runs[1]!.play()];
  expect(first).toMatchObject({ status: 'ok', reward: 1 });
  expect(first!.calls).toHaveLength(8);
  expect(second).toEqual(first);
  expect((await runs[0]!.handle.describe()).historyLength).toBeLessThan(20);
});

test('a worker that is not there is waited for by name, and its time is not that of the attempt', async () => {
  const taskQueue = `nobody/${randomUUID()}`;
  const playing = openRun('support', { ...APPROVED, taskQueue }).prepare();
  const played = playing.play();
  const { waiting } = await eventually(
    async () => playing.progress(),
    (progress) => progress.waiting !== null,
  );
  expect(waiting).toMatchObject({ attempts: 1, awaited: 'the workflow' });
  expect(waiting?.reason).toBe(`no worker takes workflow tasks of the queue ${taskQueue}; start yours`);
  const late = await createWorker(taskQueue);
  const [record] = await late.runUntil(played);
  expect(record).toMatchObject({ status: 'ok', reward: 1 });
  expect(playing.progress().waiting).toBeNull();
});

test('a deadline ends the workflow, and so does a cancelled run', async () => {
  const late = openRun('stuck');
  const [record] = await late.play({ rollout: { attemptTimeoutMs: 2000 } });
  expect(record).toMatchObject({ status: 'failed', failure: { type: 'AgentFailed' } });
  expect(record!.calls).toHaveLength(1);
  expect(await statusOf(late)).toBe('CANCELLED');
  // The same failure, should the attempt be read again.
  expect((await late.play())[0]).toEqual(record);

  const cancelled = openRun('stuck');
  const cancel = new AbortController();
  const played = { address: { storeId: 'store', run: cancelled.run, play: '0.4.0' }, isPlayedAgain: () => false };
  const playing = cancelled.play({ signal: cancel.signal, run: played });
  await eventually(
    async () => engine.executed.length,
    (calls) => calls === 2,
  );
  cancel.abort();
  await markOf(playing);
  expect(await statusOf(cancelled)).toBe('CANCELLED');
});

test('what the recorder refuses fails the workflow, and a failed workflow is a failed attempt', async () => {
  const run = openRun('tree');
  const [record] = await run.play({ rollout: { maxCallsPerAttempt: 3 } });
  expect(record).toMatchObject({
    status: 'failed',
    failure: { message: 'an attempt may make maxCallsPerAttempt 3 calls, it asked for one more' },
  });
  expect(await statusOf(run)).not.toBe('RUNNING');

  const unknown = openRun('nobody', { args: () => [] });
  const [failed] = await unknown.play({ rollout: { attemptTimeoutMs: 3000 } });
  expect(failed?.status).toBe('failed');
});

test('a workflow whose activities call by HTTP is started anew, and pays for no answer twice', async () => {
  const args: Options['args'] = (_scenario, model) => [model];
  const [undisturbed] = await openRun('plain', { args }).play();
  engine.executed.length = 0;
  const run = openRun('plain', { args });
  engine.failWhen(() => (engine.executed.length === 1 ? { status: 503 } : null));
  await markOf(run.play({ rollout: { callRetryBudgetMs: 100 } }));
  engine.failWhen(() => null);
  const [record] = await run.play();
  expect(record).toEqual(undisturbed);
  expect(record!.calls).toHaveLength(2);
  expect(engine.executed).toHaveLength(2);
});
