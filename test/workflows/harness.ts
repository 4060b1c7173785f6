/** Runs of the workflow on the project's Temporal server, with the fake activities: unique names, own queues. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

import { Client, Connection, type WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';

import type { TrackInput, TrackResult } from '../../core/contract/outbound.ts';
import type { RunState, SupervisedConfig } from '../../core/contract/contract.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { outboundQueue, runWorkflowId } from '../../core/names/queues.ts';
import { defaultRunConfig, type RunOptions } from '../../core/rules/run-defaults.ts';
import { progressQuery } from '../../workflows/messages.ts';
import type { TrainRunInput } from '../../workflows/run.ts';
import type { trainRun } from '../../workflows/train-run.ts';
import { isNightly } from '../run/tier.ts';
import { createFakeRun, type FakeOptions, type FakeRun } from './fake-activities.ts';
import { createReplayer, type Replayer } from './replayer.ts';
import { PATIENT_THREAD } from '../../workers/worker/workflow-bundle.ts';

export type RunHandle = WorkflowHandleWithFirstExecutionRunId<typeof trainRun>;

export interface StartedRun {
  handle: RunHandle;
  client: Client;
  fake: FakeRun;
  input: TrainRunInput;
  /** Queue of the worker that runs the workflow; `input.queues` are those of its activities. */
  workflowQueue: string;
}

export interface RunSetup {
  config?: Partial<RunOptions>;
  fake?: FakeOptions;
  /** 0: every workflow task replays from the start. */
  maxCachedWorkflows?: number;
  /** False: nobody polls the GPU's queue. */
  gpuWorker?: boolean;
  /** Activities that the GPU worker lacks. */
  unknown?: 'train'[];
  /** Targets that the run is delivered to, by a fake of the activity. */
  track?: { targets: string[]; deliver: (input: TrackInput) => Promise<TrackResult> };
}

export interface TestBed {
  play<T>(setup: RunSetup, scene: (started: StartedRun) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Runs are distinguished by their names. */
export const STORE_ID = 'test-store';

/** In saved histories too, which shall name no process and no machine. */
const IDENTITY = 'temper-test';

const CACHED = 100;
/**
 * With no cache every workflow task replays its history, as after each restart of a worker. That takes six times the
 * processor time: a landing plays most tests with a cache, and replays each history once, at its end.
 */
export const BOTH_CACHES: readonly [string, number][] = [
  ['replayed once', CACHED],
  ['replayed at every task', 0],
];
export const CACHES = isNightly() ? BOTH_CACHES : BOTH_CACHES.slice(0, 1);

/** A plain error is retried for ever in production, for a fixed worker to come; a test would hang. */
const FAIL_AT_ONCE = { '*': ['Error' as const] };

/** Small and short; every test says what it changes. */
const SMALL: Omit<RunOptions, 'run'> = {
  agent: 'fake',
  baseModel: 'pocket',
  steps: 3,
  groupsPerStep: 2,
  groupSize: 4,
  learningRate: 0.01,
  learningRateSchedule: 'linear',
};

/** Settings of a run that trains examples. */
export const SUPERVISED: SupervisedConfig = {
  dataset: { key: `blobs/${hashOf('examples')}`, sha256: hashOf('examples'), bytes: 10 },
  turns: 'all',
  overlong: 'mask',
  examples: 10,
  heldOut: 2,
  examplesPerStep: 3,
};

export async function openTestBed(address: string, codePath: string): Promise<TestBed> {
  quietRuntime();
  const [connection, native] = await Promise.all([
    // A page of a long history has more than the 4 MiB that gRPC takes.
    Connection.connect({ address, channelArgs: { 'grpc.max_receive_message_length': -1 } }),
    NativeConnection.connect({ address }),
  ]);
  const client = new Client({ connection, identity: IDENTITY });
  const workflowWorkers = createWorkflowWorkers(native, codePath);
  const replayer = createReplayer({ workflowBundle: { codePath }, workflowFailureErrorTypes: FAIL_AT_ONCE });
  return {
    play: (setup, scene) => play({ client, native, workflowWorkers, replayer }, setup, scene),
    async close() {
      await workflowWorkers.close();
      await replayer.close();
      await connection.close();
      await native.close();
    },
  };
}

let isQuiet = false;

/** Errors alone, without the task that had them: tests provoke many. Once per process, which plays several files. */
export function quietRuntime(): void {
  if (isQuiet) return;
  isQuiet = true;
  Runtime.install({
    logger: new DefaultLogger('ERROR', ({ message }) => console.error(message)),
    // Workers that all files of a process share end with it.
    shutdownSignals: [],
    telemetryOptions: { logging: { filter: 'OFF' } },
  });
}

/** Workers that run workflows only. Each loads the bundle, so all runs of a file share one for each size of the cache. */
interface WorkflowWorkers {
  /** Starts the worker if there is none yet. */
  queueFor(maxCachedWorkflows: number): Promise<string>;
  close(): Promise<void>;
}

interface Bed {
  client: Client;
  native: NativeConnection;
  workflowWorkers: WorkflowWorkers;
  replayer: Replayer;
}

function createWorkflowWorkers(connection: NativeConnection, codePath: string): WorkflowWorkers {
  const open = new Map<number, Promise<{ worker: Worker; running: Promise<void> }>>();
  const bed = randomUUID();
  const start = async (maxCachedWorkflows: number, taskQueue: string) => {
    const worker = await Worker.create({
      connection,
      identity: IDENTITY,
      taskQueue,
      workflowBundle: { codePath },
      workflowFailureErrorTypes: FAIL_AT_ONCE,
      maxCachedWorkflows,
      ...PATIENT_THREAD,
    });
    // Not in the SDK's types: another version may know it by another name.
    assert.equal(worker.options.isolateExecutionTimeoutMs, 3_600_000);
    return { worker, running: worker.run() };
  };
  return {
    async queueFor(maxCachedWorkflows) {
      const queue = `workflows/${bed}/${maxCachedWorkflows}`;
      if (!open.has(maxCachedWorkflows)) open.set(maxCachedWorkflows, start(maxCachedWorkflows, queue));
      await open.get(maxCachedWorkflows);
      return queue;
    },
    async close() {
      const started = await Promise.all(open.values());
      for (const { worker } of started) worker.shutdown();
      await Promise.all(started.map(({ running }) => running));
    },
  };
}

async function play<T>(bed: Bed, setup: RunSetup, scene: (started: StartedRun) => Promise<T>): Promise<T> {
  const run = `test-${randomUUID()}`;
  const queues = { rollout: `rollout/${run}`, gpu: `gpu/${run}` };
  const config = defaultRunConfig({ ...SMALL, run, ...setup.config });
  const fake = createFakeRun(setup.fake);
  const workers = await createWorkers(bed.native, setup, queues, fake);
  const { track } = setup;
  if (track !== undefined)
    workers.push(
      await Worker.create({
        connection: bed.native,
        identity: IDENTITY,
        taskQueue: outboundQueue(run),
        activities: { track: track.deliver },
      }),
    );
  const workflowQueue = await bed.workflowWorkers.queueFor(setup.maxCachedWorkflows ?? CACHED);
  const input: TrainRunInput = {
    config,
    queues,
    carried: null,
    resume: null,
    ...(track && { track: { storeId: run, targets: track.targets } }),
  };
  const running = workers.map((worker) => worker.run());
  try {
    const handle: RunHandle = await bed.client.workflow.start<typeof trainRun>('trainRun', {
      workflowId: runWorkflowId(STORE_ID, config.run),
      taskQueue: workflowQueue,
      args: [input],
    });
    try {
      const outcome = await scene({ handle, client: bed.client, fake, input, workflowQueue });
      if (setup.maxCachedWorkflows !== 0) await replayAll(bed, handle);
      return outcome;
    } finally {
      await endIfOpen(handle);
    }
  } finally {
    for (const worker of workers) worker.shutdown();
    await Promise.all(running);
  }
}

/** For the run's activities. */
function createWorkers(
  connection: NativeConnection,
  { gpuWorker, unknown }: RunSetup,
  queues: TrainRunInput['queues'],
  fake: FakeRun,
): Promise<Worker[]> {
  const shared = { connection, identity: IDENTITY };
  const agent = { ...shared, taskQueue: queues.rollout, activities: { ...fake.agent, ...fake.schedule } };
  const known = Object.entries(fake.gpu).filter(([name]) => !unknown?.some((missing) => missing === name));
  const gpu = { ...shared, taskQueue: queues.gpu, activities: Object.fromEntries(known) };
  return Promise.all((gpuWorker === false ? [agent] : [agent, gpu]).map((options) => Worker.create(options)));
}

/** All executions of a run that continued as new, as far as they have come. */
async function replayAll({ client, replayer }: Bed, { workflowId, firstExecutionRunId }: RunHandle): Promise<void> {
  for (let runId: string | null | undefined = firstExecutionRunId; runId;) {
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    await replayer.replay(workflowId, history);
    runId = history.events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
}

async function endIfOpen(handle: RunHandle): Promise<void> {
  await handle.terminate('the test is over').catch(() => undefined);
}

/** A door that activities wait at. */
export function createGate(): { opened: Promise<void>; open: () => void } {
  const door = new EventEmitter();
  const opened = once(door, 'open').then(() => undefined);
  return { opened, open: () => void door.emit('open') };
}

/** Asks until the answer is right; the test's own timeout bounds it. */
export async function eventually<T>(ask: () => Promise<T>, isRight: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (isRight(answer)) return answer;
    await delay(50);
  }
}

export const untilProgress = (handle: RunHandle, isRight: (progress: RunState) => boolean): Promise<RunState> =>
  eventually(() => handle.query(progressQuery), isRight);

export const untilPaused = (handle: RunHandle): Promise<RunState> =>
  untilProgress(handle, ({ state }) => state === 'paused');

/** Holds the training of one step of branch 0 until the gate opens. */
export function holdTraining(heldStep: number) {
  const [reached, released] = [createGate(), createGate()];
  const before = async (name: string, input: unknown): Promise<void> => {
    const { branch, step } = input as { branch: number; step: number };
    if (name !== 'train' || branch !== 0 || step !== heldStep) return;
    reached.open();
    await released.opened;
  };
  return { reached: reached.opened, release: released.open, before };
}
