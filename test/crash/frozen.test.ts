/**
 * Two workers on one queue, and one of them stands still. Frozen in the middle of train and thawed after the other one
 * finished the step, it discards its work, and there is one commit. Frozen while it merely polls, it is handed tasks all
 * the same. What that costs a run is read from its history: one time-out for each task that was handed over, not more.
 * Thawed, it does nothing with them.
 */
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporal } from '@temporalio/proto';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { GPU_QUEUE } from '../../core/contract/wire-constants.ts';
import { runWorkflowId, storeQueue, WORKFLOW_QUEUE } from '../../core/names/queues.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { connectClient, type TemporalClient } from '../../workers/connection/connection.ts';
import { readPollers } from '../../workers/connection/pollers.ts';
import { Project, succeed, ticTacToe, type Command } from '../stack.ts';
import { until } from '../until.ts';
import {
  startSecondGpuWorker,
  startSecondTypescriptWorker,
  temporalAddress,
  told,
  type SecondWorker,
} from './second-worker.ts';

/** Steps of a run with a worker that is frozen while it polls, and of one that is frozen while it trains. */
const [STEPS, LATE_STEPS] = [3, 5];
const FLAGS = ['--steps', String(STEPS), '--groups-per-step', '2', '--group-size', '8'];
const LATE_FLAGS = ['--steps', String(LATE_STEPS), '--groups-per-step', '4', '--group-size', '16'];
const SMALL = ['--base-model', 'pocket', '--eval-scenarios', '1', '--seed', '5'];
const MORE = [...SMALL, '--learning-rate', '4e-3', '--replacement-rounds', '0'];
/** Polls that a worker has at the server at once: a GPU worker, and a TypeScript worker for each kind of task. */
const [GPU_POLLS, POLLS] = [1, 5];
const WORKFLOW_TASK = 'workflow task';
/** Whoever was handed a task while it stood still answers at once. */
const THAWED_MS = 3000;
/** Which of two polls gets a task is the server's choice; of a run's tasks, one is sooner or later the frozen one's. */
const MOST_RUNS = 6;
/** Temporal holds a poll for a minute: half of it is left for a run to hand something to whoever stands still. */
const FRESH_POLL_MS = 30_000;

const { TimeoutType } = temporal.api.enums.v1;

const project = new Project({ folder: inject('project') });
let server: TemporalClient;
let storeId: string;
let second: SecondWorker;

beforeAll(async () => {
  server = await connectClient({ address: temporalAddress(project), namespace: 'default' });
  await train('alone');
  storeId = await (await openStore(project.path('store'))).id();
});

afterAll(() => server.close());

const AGENT = ticTacToe();
const start = (run: string, flags: readonly string[]) => project.start('train', AGENT, '--run', run, ...flags, ...MORE);

async function train(run: string, flags = FLAGS): Promise<void> {
  await succeed(start(run, flags).ended);
}

/** A task that somebody was handed who did not answer. */
interface Late {
  readonly what: string;
  /** How often, so that as many time-outs passed. */
  readonly times: number;
  readonly timeout: string;
}

type Event = temporal.api.history.v1.IHistoryEvent;
type Events = ReadonlyMap<string, Event>;

async function lateTasks(run: string): Promise<Late[]> {
  const { events } = await server.client.workflow.getHandle(runWorkflowId(storeId, run)).fetchHistory();
  const byId = new Map((events ?? []).map((event) => [String(event.eventId), event]));
  return [...byId.values()].flatMap((event) => lateActivity(event, byId) ?? lateWorkflowTask(event, byId) ?? []);
}

/** Tries that failed stand in no event of their own: the one that counted tells how many there were, and why. */
function lateActivity({ activityTaskStartedEventAttributes: started }: Event, byId: Events): Late | null {
  const scheduled = byId.get(String(started?.scheduledEventId));
  if (scheduled === undefined || !started?.lastFailure) return null;
  return {
    what: scheduled.activityTaskScheduledEventAttributes?.activityType?.name ?? '',
    times: started.attempt! - 1,
    timeout: nameOf(started.lastFailure.timeoutFailureInfo?.timeoutType),
  };
}

function lateWorkflowTask({ workflowTaskTimedOutEventAttributes: end }: Event, byId: Events): Late | null {
  if (!byId.has(String(end?.startedEventId))) return null;
  return { what: WORKFLOW_TASK, times: 1, timeout: nameOf(end?.timeoutType) };
}

const nameOf = (type: temporal.api.enums.v1.TimeoutType | null | undefined) => TimeoutType[type ?? 0] ?? '';

type Polls = readonly [queue: string, kind: 'activity' | 'workflow'];

/** A worker that froze without a poll at the server would be handed nothing; one that polls again is awake. */
async function untilItPolls({ child }: SecondWorker, [queue, kind]: Polls): Promise<void> {
  const own = `${child.pid}@${hostname()}`;
  await until(`${own} polls ${queue}`, async () => {
    const pollers = await readPollers(server, storeQueue(storeId, queue), kind);
    return pollers.some(({ identity, polledAgoMs }) => identity === own && polledAgoMs < FRESH_POLL_MS);
  });
}

/** Plays runs with one worker frozen while it polls, until one of them handed it something. */
async function playWithFrozen(worker: SecondWorker, polls: Polls): Promise<{ run: string; late: Late[] }> {
  for (let number = 1; number <= MOST_RUNS; number++) {
    const run = `${polls[0]}-${number}`;
    await untilItPolls(worker, polls);
    worker.freeze();
    await train(run);
    const late = await lateTasks(run);
    if (late.length > 0) return { run, late };
    worker.thaw();
  }
  throw new Error(`in ${MOST_RUNS} runs nothing was handed to the frozen worker`);
}

/**
 * Once it polls again it has answered for all that reached it. That is not always what it was handed: a poll that became
 * older than 70 s meanwhile is given up by the SDK together with the task in it.
 */
async function thaw(worker: SecondWorker, polls: Polls): Promise<void> {
  worker.thaw();
  await untilItPolls(worker, polls);
  await sleep(THAWED_MS);
}

/**
 * Who stands still sends no further poll. Each that it sent can be handed one task, and each task that it was handed costs
 * one time-out: of its heartbeat, or, if it is a workflow task, of its answer.
 */
function expectOneTimeoutEach(late: readonly Late[], polls: number): void {
  for (const { what, timeout } of late)
    expect(timeout, what).toBe(what === WORKFLOW_TASK ? 'TIMEOUT_TYPE_START_TO_CLOSE' : 'TIMEOUT_TYPE_HEARTBEAT');
  for (const each of new Set(late.map(({ what }) => what))) {
    const times = late.filter(({ what }) => what === each).reduce((sum, task) => sum + task.times, 0);
    expect(times, each).toBeLessThanOrEqual(polls);
  }
}

function commitsOf(run: string): number[] {
  const commits = [...second.log(), ...project.log('gpu-worker')].filter(({ found }) => found === false);
  return told(commits, 'step committed', run).toSorted((a, b) => a - b);
}

const onceEach = (steps: number) => Array.from({ length: steps + 1 }, (_, step) => step);

/** Stopped by itself between two micro-batches; which of the two workers gets a step is the server's choice. */
async function freezeInTrain(): Promise<{ run: string; step: number; running: Command }> {
  for (let number = 1; number <= MOST_RUNS; number++) {
    const run = `late-${number}`;
    project.aim('gpu-worker', { row: run, point: 'train.micro-batch', action: 'stop' });
    const running = start(run, LATE_FLAGS);
    const isStopped = () => project.hit(run) !== null;
    await until('the second worker trains', () => isStopped() || running.outcome() !== null);
    if (!isStopped()) continue;
    // Step 0 is made without training. Its log is read a moment after it is written.
    const trains = () => second.told('step begins', run).find((step) => step > 0);
    await until('it says which step it trains', () => trains() !== undefined);
    return { run, step: trains()!, running };
  }
  throw new Error(`in ${MOST_RUNS} runs the second worker was given no step to train`);
}

describe('a second GPU worker', () => {
  beforeAll(async () => {
    second = await startSecondGpuWorker(project, project.points);
  });
  afterAll(() => second.close());

  test('frozen in the middle of train, it discards its step, and the bytes are the undisturbed run’s', async () => {
    const { run, step, running } = await freezeInTrain();
    const manifest = project.manifest(run, step);
    await until('the other worker commits the step', () => existsSync(manifest));
    const winners = readFileSync(manifest);
    second.thaw();
    await until('the late one says so', () => second.told('step discarded', run).includes(step));

    await succeed(running.ended);
    expect(commitsOf(run)).toEqual(onceEach(LATE_STEPS));
    expect(readFileSync(manifest).equals(winners)).toBe(true);
    await train('late-alone', LATE_FLAGS);
    expect(project.committed(run)).toEqual(project.committed('late-alone'));
  });

  test('frozen while it polls, it costs one time-out for each task, does nothing with it when thawed, and the bytes are those of one worker', async () => {
    const { run, late } = await playWithFrozen(second, [GPU_QUEUE, 'activity']);
    expectOneTimeoutEach(late, GPU_POLLS);
    const before = project.committed(run);

    await thaw(second, [GPU_QUEUE, 'activity']);
    expect(second.told('activity refused', run).length).toBeLessThanOrEqual(handedOver(late));
    expect(second.told('step begins', run)).toEqual([]);
    expect(project.committed(run)).toEqual(before);
    expect(commitsOf(run)).toEqual(onceEach(STEPS));
    expect(before).toEqual(project.committed('alone'));
  });
});

test('a second TypeScript worker frozen while it polls costs one time-out for each task, does nothing with it when thawed, and the bytes are those of one worker', async () => {
  second = await startSecondTypescriptWorker(project, AGENT);
  onTestFinished(() => second.close());
  const { run, late } = await playWithFrozen(second, [WORKFLOW_QUEUE, 'workflow']);
  expectOneTimeoutEach(late, POLLS);
  const before = project.committed(run);

  await thaw(second, [WORKFLOW_QUEUE, 'workflow']);
  const refused = second.log().filter((line) => line['run'] === run && isRefusal(line));
  expect(refused.length).toBeLessThanOrEqual(handedOver(late));
  expect(project.committed(run)).toEqual(before);
  expect(commitsOf(run)).toEqual(onceEach(STEPS));
  expect(before).toEqual(project.committed('alone'));
});

function handedOver(late: readonly Late[]): number {
  const activities = late.filter(({ what }) => what !== WORKFLOW_TASK);
  return activities.reduce((sum, { times }) => sum + times, 0);
}

function isRefusal({ msg, error }: Record<string, unknown>): boolean {
  const { message = '' } = (error ?? {}) as { message?: string };
  return msg === 'Activity failed' && message.includes('this process was suspended; Temporal retries the activity');
}
