import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test } from 'vitest';
import { createTrackActivities, type OutboundDependencies } from '../../activities/track.ts';
import { TemperError } from '../../core/contract/failures.ts';
import type { Target } from '../../outbound/target.ts';
import { readCursor } from '../../store/records/production/outbound-cursor.ts';
import { startTrackedRun, type TrackedRun } from '../outbound/track/tracked-run.ts';
import { NEVER_PAUSED } from './world.ts';

const PATIENCE = { workMs: 300, pollMs: 20, gatherMs: 0, askMs: 0, beatMs: 0 };
const logger = { info: () => undefined, warn: () => undefined };

/** Notes what is delivered to it. */
function createTarget(fail: () => Error | null = () => null): { target: Target; delivered: string[] } {
  const delivered: string[] = [];
  const note = (line: string): void => {
    const error = fail();
    if (error !== null) throw error;
    delivered.push(line);
  };
  const target: Target = {
    name: 'fake',
    batch: 100,
    onRollback: 'continue',
    async begin() {
      note('begin');
      return { id: 'x' };
    },
    deliver: async (_, rows) => rows.forEach((row) => note(`${row.kind} ${row.step}`)),
    beat: async () => note('beat'),
    end: async (_, outcome) => note(`end ${outcome}`),
  };
  return { target, delivered };
}

function track(
  { store, run }: TrackedRun,
  target: Target,
  isRunning: OutboundDependencies['isRunning'],
  patience = PATIENCE,
) {
  const dependencies = { store, logger, pauses: NEVER_PAUSED, openTarget: () => target, isRunning, patience };
  const activities = createTrackActivities(dependencies);
  return new MockActivityEnvironment().run(activities.track, { run, target: 'fake', from: 'start' as const });
}

test('a run whose workflow is gone without an end is delivered as crashed, and one that says its end as it says', async () => {
  const crashed = await startTrackedRun();
  await crashed.step();
  const { target, delivered } = createTarget();
  expect(await track(crashed, target, () => Promise.resolve(false))).toEqual({ over: true });
  expect(delivered).toEqual(['begin', 'step 1', 'end crashed']);

  const stopped = await startTrackedRun();
  await stopped.set({ state: 'stopped' });
  const other = createTarget();
  expect(await track(stopped, other.target, () => Promise.resolve(false))).toEqual({ over: true });
  expect(other.delivered).toEqual(['begin', 'end stopped']);
});

test('an activity returns in time while the run runs, and a quiet run is still said to run', async () => {
  const tracked = await startTrackedRun();
  const { target, delivered } = createTarget();
  expect(await track(tracked, target, () => Promise.resolve(true))).toEqual({ over: false });
  expect(delivered.slice(0, 2)).toEqual(['begin', 'beat']);
  expect((await readCursor(tracked.store, 'demo', 'fake'))?.memory).toEqual({ id: 'x' });
});

test('a state that was completed before the run was started again is no end', async () => {
  const tracked = await startTrackedRun();
  await tracked.set({ state: 'completed' });
  const { target, delivered } = createTarget();
  expect(await track(tracked, target, () => Promise.resolve(true))).toEqual({ over: false });
  expect(delivered).not.toContain('end finished');
});

test('new rows of a running run wait for others, and are delivered at once when it has ended', async () => {
  const tracked = await startTrackedRun();
  const { target, delivered } = createTarget();
  let [isRunning, looks] = [true, 0];
  const ask = () => {
    looks += 1;
    return Promise.resolve(isRunning);
  };
  const gathering = track(tracked, target, ask, { ...PATIENCE, workMs: 60_000, gatherMs: 60_000 });
  // It knew all that there was.
  await expect.poll(() => delivered).toContain('beat');
  await tracked.step();
  const before = looks;
  await expect.poll(() => looks).toBeGreaterThan(before + 2);
  expect(delivered).not.toContain('step 1');
  isRunning = false;
  expect(await gathering).toEqual({ over: true });
  expect(delivered.filter((line) => line !== 'beat')).toEqual(['begin', 'step 1', 'end crashed']);
});

test('what a person may mend is asked for again', async () => {
  const tracked = await startTrackedRun();
  const { target } = createTarget(() => new TemperError('BadConfig', 'Weights & Biases needs a key in WANDB_API_KEY'));
  const failing = track(tracked, target, () => Promise.resolve(true));
  await expect(failing).rejects.toMatchObject({ type: 'TargetUnavailable', nonRetryable: false });
});

test('a run that left nothing in the store is over', async () => {
  const { store } = await startTrackedRun();
  const { target, delivered } = createTarget();
  const nothing = { store, run: 'never-prepared' } as TrackedRun;
  expect(await track(nothing, target, () => Promise.resolve(false))).toEqual({ over: true });
  expect(delivered).toEqual([]);
});
