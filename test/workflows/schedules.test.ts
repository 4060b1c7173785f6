import { randomUUID } from 'node:crypto';

import { ScheduleOverlapPolicy } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/activity';
import { expect, inject, test } from 'vitest';

import type { InitialiseInput, TrainInput } from '../../core/contract/contract.ts';
import { runWorkflowId, scheduleId } from '../../core/names/queues.ts';
import { readCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { readFirings } from '../../store/records/production/schedules.ts';
import { readRun } from '../../store/records/runs/run-reader.ts';
import { readStoreIndex } from '../../store/records/retention/store-index.ts';
import { temperRun } from '../../workflows/search-attributes.ts';
import type { FakeOptions } from './fake-activities.ts';
import { createGate, eventually, quietRuntime } from './harness.ts';
import { playScheduled, type Scheduled, type ScheduledOptions } from './scheduled.ts';

quietRuntime();

/** Schedules are the namespace's: every test has its own. */
const newName = () => `nightly-${randomUUID().slice(0, 8)}`;

function play(options: ScheduledOptions, scene: (scheduled: Scheduled) => Promise<void>): Promise<void> {
  return playScheduled({ address: inject('temporalAddress'), codePath: inject('workflowBundle') }, options, scene);
}

/** Far enough away never to come by itself. */
const RARELY = ['--every', '2w'];

function summary(scheduled: Scheduled, name: string): Promise<Record<string, unknown>> {
  return scheduled.schedule('show', name, '--json').then(({ stdout }) => JSON.parse(stdout) as Record<string, unknown>);
}

const untilSummary = (scheduled: Scheduled, name: string, isRight: (shown: Record<string, unknown>) => boolean) =>
  eventually(() => summary(scheduled, name), isRight);

test('each firing begins with what the last one ended with, under a seed of its own', async () => {
  await play({}, async (scheduled) => {
    const name = newName();
    const { exitCode, stdout, stderr } = await scheduled.create(name, ...RARELY);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toContain(`${name} retrains guess on pocket, every 2w, 2 steps each`);
    for (const count of [1, 2]) {
      expect(await scheduled.schedule('trigger', name)).toMatchObject({ exitCode: 0, stderr: '' });
      await scheduled.concluded(name, count);
    }
    const [one, two] = await Promise.all([1, 2].map((number) => readRun(scheduled.store, `${name}-${number}`)));
    const ended = await readCheckpoint(scheduled.store, { run: `${name}-1`, branch: 0, step: 2 });
    expect(one?.file.config.parent).toBeNull();
    expect(two?.file.config.parent).toEqual(ended);
    expect(one?.file.config.seed).not.toBe(two?.file.config.seed);
    const begun = scheduled.fake.done.filter(({ name: activity }) => activity === 'initialise');
    expect(begun.map(({ input }) => (input as InitialiseInput).parent)).toEqual([null, ended]);
    expect(await summary(scheduled, name)).toMatchObject({
      agent: 'guess',
      timing: 'every 2w',
      state: 'active',
      reason: null,
      lastRun: { run: `${name}-2`, state: 'completed' },
      begins: `${name}-2@2`,
      firings: 2,
    });
  });
});

test('a run of a schedule is a run like any other: found by its name, with a summary', async () => {
  await play({}, async (scheduled) => {
    const name = newName();
    await scheduled.create(name, ...RARELY);
    await scheduled.schedule('trigger', name);
    await scheduled.concluded(name, 1);
    const described = await scheduled.client.workflow
      .getHandle(runWorkflowId(scheduled.storeId, `${name}-1`))
      .describe();
    expect(described.type).toBe('trainRun');
    expect(described.typedSearchAttributes.get<'KEYWORD'>(temperRun)).toBe(`${name}-1`);
    expect(await described.staticSummary()).toBe(`${name}-1: guess on pocket`);
    expect(described.memo?.['config']).toMatchObject({ run: `${name}-1`, steps: 2 });
    const { recentActions } = (await scheduled.describe(name)).info;
    const firing = await scheduled.client.workflow.getHandle(recentActions[0]!.action.workflow.workflowId).describe();
    expect(firing.workflowId).toMatch(new RegExp(`^${scheduleId(scheduled.storeId, name)}-20\\d\\d-`));
    expect(await firing.staticSummary()).toBe(`${name}: retrains guess on pocket`);
  });
});

test('a firing while one runs is skipped', async () => {
  const [reached, released] = [createGate(), createGate()];
  const before: FakeOptions['before'] = async (activity, input) => {
    if (activity !== 'train' || (input as TrainInput).step !== 1) return;
    reached.open();
    await released.opened;
  };
  await play({ before }, async (scheduled) => {
    const name = newName();
    await scheduled.create(name, ...RARELY);
    await scheduled.schedule('trigger', name);
    await reached.opened;
    await untilSummary(scheduled, name, ({ state }) => state === 'running');
    const told = await scheduled.schedule('trigger', name);
    expect(told).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('a run is in progress') as string });
    // A due time triggers it, too: past the command's own look.
    await scheduled.client.schedule.getHandle(scheduleId(scheduled.storeId, name)).trigger(ScheduleOverlapPolicy.SKIP);
    await untilSummary(scheduled, name, ({ skipped }) => skipped === 1);
    released.open();
    expect(await scheduled.concluded(name, 1)).toHaveLength(1);
    expect(await summary(scheduled, name)).toMatchObject({ firings: 1 });
  });
});

test('a run that fails pauses its schedule, with the reason; resumed, it begins with the last good checkpoint', async () => {
  const before: FakeOptions['before'] = (activity, input) => {
    if (activity !== 'train' || !(input as TrainInput).run.endsWith('-2')) return;
    throw ApplicationFailure.create({ type: 'LossNotFinite', message: 'loss is NaN' });
  };
  await play({ before }, async (scheduled) => {
    const name = newName();
    await scheduled.create(name, ...RARELY);
    await scheduled.schedule('trigger', name);
    await scheduled.concluded(name, 1);
    await scheduled.schedule('trigger', name);
    const paused = await untilSummary(scheduled, name, ({ state }) => state === 'paused');
    expect(paused).toMatchObject({ lastRun: { run: `${name}-2`, state: 'failed' }, nextTimes: [] });
    expect(paused['reason']).toContain(`the run ${name}-2 failed: LossNotFinite: loss is NaN`);
    const { stdout } = await scheduled.schedule('list');
    const listed = JSON.parse((await scheduled.schedule('list', '--json')).stdout) as { name: string }[];
    expect(listed.map((each) => each.name)).toContain(name);
    expect(stdout).toContain(`the run ${name}-2 failed`);
    expect((await scheduled.schedule('resume', name)).stdout).toMatch(/is resumed; next time: 20\d\d-/);
    await scheduled.schedule('trigger', name);
    const firings = await scheduled.concluded(name, 2);
    expect(firings.map(({ run, parent }) => [run, parent?.run ?? null])).toEqual([
      [`${name}-1`, null],
      [`${name}-2`, `${name}-1`],
      [`${name}-3`, `${name}-1`],
    ]);
  });
});

test('a run that a person cancels pauses its schedule too', async () => {
  const [reached, released] = [createGate(), createGate()];
  const before: FakeOptions['before'] = async (activity) => {
    if (activity !== 'train') return;
    reached.open();
    await released.opened;
  };
  await play({ before }, async (scheduled) => {
    const name = newName();
    await scheduled.create(name, ...RARELY);
    await scheduled.schedule('trigger', name);
    await reached.opened;
    await scheduled.client.workflow.getHandle(runWorkflowId(scheduled.storeId, `${name}-1`)).cancel();
    const paused = await untilSummary(scheduled, name, ({ state }) => state === 'paused');
    expect(paused['reason']).toContain(`the run ${name}-1 was cancelled`);
    released.open();
  });
});

test('a backfill fires for each time that has passed, one run after the other', async () => {
  await play({}, async (scheduled) => {
    const name = newName();
    await scheduled.create(name, '--cron', '0 3 * * *');
    const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
    const span = ['--from', `${day(3)}T03:00:00Z`, '--to', `${day(2)}T03:00:00Z`];
    expect(await scheduled.schedule('backfill', name, ...span)).toMatchObject({ exitCode: 0, stderr: '' });
    const firings = await scheduled.concluded(name, 2);
    expect(firings.map(({ run, parent, firing }) => [run, parent?.run ?? null, firing])).toEqual([
      [`${name}-1`, null, `${scheduleId(scheduled.storeId, name)}-${day(3)}T03:00:00Z`],
      [`${name}-2`, `${name}-1`, `${scheduleId(scheduled.storeId, name)}-${day(2)}T03:00:00Z`],
    ]);
    // The same times once more: their runs are there.
    await scheduled.schedule('backfill', name, ...span);
    await untilSummary(scheduled, name, ({ firings: taken, state }) => taken === 4 && state === 'active');
    expect(await readFirings(scheduled.store, name)).toEqual(firings);
    expect(scheduled.fake.done.filter(({ name: activity }) => activity === 'prepare')).toHaveLength(2);
  });
});

test('a failure in a backfill pauses the schedule, not the times to come; its time once more goes on with its run', async () => {
  let isBroken = true;
  const before: FakeOptions['before'] = (activity, input) => {
    if (!isBroken || activity !== 'train' || !(input as TrainInput).run.endsWith('-1')) return;
    throw ApplicationFailure.create({ type: 'LossNotFinite', message: 'loss is NaN' });
  };
  await play({ before }, async (scheduled) => {
    const name = newName();
    await scheduled.create(name, '--cron', '0 3 * * *');
    const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
    const backfill = (first: number, last: number) =>
      scheduled.schedule('backfill', name, '--from', `${day(first)}T03:00:00Z`, '--to', `${day(last)}T03:00:00Z`);
    await backfill(3, 2);
    const [failed, second] = await scheduled.concluded(name, 1);
    expect([failed?.checkpoint, second?.parent]).toEqual([null, null]);
    expect(await summary(scheduled, name)).toMatchObject({ state: 'paused', begins: `${name}-2@2` });
    isBroken = false;
    await backfill(3, 3);
    const firings = await scheduled.concluded(name, 2);
    expect(firings.map(({ checkpoint }) => checkpoint?.run)).toEqual([`${name}-1`, `${name}-2`]);
  });
});

/** Steps that each schedule trains, as the store records them for those who remove weights. */
async function activeSteps({ store }: Scheduled): Promise<Record<string, unknown>> {
  const { schedules } = await readStoreIndex(store);
  return Object.fromEntries(
    schedules.flatMap(({ name, file }) => (file === null ? [] : [[name, file.config['steps']]])),
  );
}

test('a schedule is made once; made anew under its name it goes on from its last checkpoint', async () => {
  await play({}, async (scheduled) => {
    const name = newName();
    await scheduled.create(name, ...RARELY);
    expect(await activeSteps(scheduled)).toEqual({ [name]: 2 });
    expect(await scheduled.create(name, ...RARELY, '--steps', '3')).toMatchObject({
      exitCode: 2,
      stderr: `temper: a schedule ${name} exists; choose another --name, or delete it first: temper schedule delete ${name}`,
    });
    // The refused schedule has not replaced the record of what exists.
    expect(await activeSteps(scheduled)).toEqual({ [name]: 2 });
    await scheduled.schedule('trigger', name);
    await scheduled.concluded(name, 1);
    expect((await scheduled.schedule('delete', name)).exitCode).toBe(0);
    expect(await activeSteps(scheduled)).toEqual({});
    const again = await scheduled.create(name, ...RARELY, '--from', `${name}-1@1`);
    expect(again).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--from has no effect') as string });
    expect((await scheduled.create(name, ...RARELY)).stdout).toContain(`starts   from ${name}-1@2`);
  });
});

test('a cron line that Temporal refuses is refused with its reason, and makes no schedule', async () => {
  await play({}, async (scheduled) => {
    const name = newName();
    const { exitCode, stderr } = await scheduled.create(name, '--cron', '0 25 * * *');
    expect(exitCode).toBe(2);
    expect(stderr).toBe(
      `temper: --cron must be a cron line that Temporal reads, got "0 25 * * *" (Hour is not in range [0-23]); write it like '0 3 * * *'`,
    );
    expect((await scheduled.schedule('show', name)).stderr).toContain(`no schedule ${name} on this server`);
  });
});

test('a schedule that is not there is told so by every action', async () => {
  await play({}, async ({ schedule }) => {
    for (const action of ['show', 'pause', 'resume', 'trigger', 'delete']) {
      expect(await schedule(action, 'nope')).toEqual({
        exitCode: 2,
        stdout: '',
        stderr: 'temper: no schedule nope on this server; see temper schedule list',
      });
    }
  });
});

test('a paused schedule tells why and fires no more by itself', async () => {
  await play({}, async (scheduled) => {
    const name = newName();
    await scheduled.create(name, ...RARELY);
    await scheduled.schedule('pause', name, '--reason', 'the data is wrong');
    expect(await summary(scheduled, name)).toMatchObject({
      state: 'paused',
      reason: 'the data is wrong',
      nextTimes: [],
      lastRun: null,
      begins: null,
    });
  });
});

test('a firing that no worker takes is seen to wait, and for what', async () => {
  await play({ agentWorker: false }, async (scheduled) => {
    const name = newName();
    await scheduled.create(name, ...RARELY);
    const { nextTimes } = (await summary(scheduled, name)) as { nextTimes: string[] };
    const days = (Date.parse(nextTimes[0] ?? '') - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(14);
    await scheduled.schedule('trigger', name);
    const waiting = await untilSummary(scheduled, name, ({ state }) => state !== 'active');
    expect(waiting).toMatchObject({ state: 'waiting', lastRun: null });
    expect(waiting['reason']).toContain('start temper dev --agent FILE');
    const { runningActions } = (await scheduled.describe(name)).info;
    await scheduled.client.workflow.getHandle(runningActions[0]!.workflow.workflowId).terminate('the test is over');
  });
});
