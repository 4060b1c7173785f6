/** What a target has: the cursor moves once the target has taken a delivery, and only in the worker that has the work. */
import { expect, test } from 'vitest';
import { TemperError } from '../../../core/contract/failures.ts';
import { listDeliveries } from '../../../outbound/list-deliveries.ts';
import { SnapshotReader } from '../../../outbound/run-snapshot.ts';
import type { Target } from '../../../outbound/target.ts';
import { deliverNext } from '../../../outbound/deliver-run.ts';
import { readCursor } from '../../../store/records/production/outbound-cursor.ts';
import { startTrackedRun, deliverAll, type TrackedRun } from './tracked-run.ts';

function createTarget(onTold: () => void = () => undefined) {
  const delivered: string[] = [];
  const target: Target = {
    name: 'fake',
    batch: 100,
    onRollback: 'continue',
    begin: () => Promise.resolve({}),
    async deliver(_, rows) {
      delivered.push(...rows.map(({ kind, step, number }) => `${number}: ${kind} ${step}`));
      onTold();
    },
    end: () => Promise.resolve(),
  };
  return { target, delivered };
}

const cursorOf = ({ store, run }: TrackedRun) => readCursor(store, run, 'fake');

test('a worker that lost its work meanwhile delivers nothing more, and leaves the cursor to the one that has it', async () => {
  const tracked = await startTrackedRun();
  await tracked.step();
  let isLost = false;
  const { target, delivered } = createTarget(() => (isLost = true));
  const checkFresh = () => {
    if (isLost) throw new Error('another worker has the work');
  };
  const next = async () => {
    const snapshot = (await new SnapshotReader(tracked.store, tracked.run).read())!;
    const scope = { store: tracked.store, signal: new AbortController().signal, checkFresh };
    return deliverNext(target, snapshot, { outcome: null, from: 'start' }, scope);
  };
  expect(await next()).toBe(true);
  await expect(next()).rejects.toThrow('another worker has the work');
  expect(await cursorOf(tracked)).toMatchObject({ step: 0, pending: ['s1'] });
  await expect(next()).rejects.toThrow('another worker has the work');
  expect(delivered).toEqual(['0: step 1']);
  isLost = false;
  await deliverAll(tracked, target);
  expect(delivered).toEqual(['0: step 1', '0: step 1']);
  expect(await cursorOf(tracked)).toMatchObject({ step: 1, pending: null });
});

test('why a delivery failed is kept beside what the target has, until one succeeds', async () => {
  const tracked = await startTrackedRun();
  await tracked.step();
  let error: Error | null = new TemperError('DeploymentFailed', 'no such name');
  const { target } = createTarget(() => {
    if (error !== null) throw error;
  });
  const failure = async () => (await listDeliveries(tracked.store, 'demo'))[0]?.failure;
  await deliverAll(tracked, target, { tries: 1 }).catch(() => undefined);
  expect([await failure(), (await cursorOf(tracked))?.pending]).toEqual(['no such name', ['s1']]);
  error = null;
  await deliverAll(tracked, target);
  expect(await failure()).toBeNull();
});

test('a target that continues after a rollback gets the steps and evaluations of the new branch', async () => {
  const tracked = await startTrackedRun();
  const { target, delivered } = createTarget();
  for (let step = 1; step <= 2; step += 1) await tracked.step();
  await tracked.evaluate();
  await deliverAll(tracked, target);
  await tracked.rollBack(1);
  await tracked.step();
  await tracked.evaluate();
  await deliverAll(tracked, target);
  const before = ['0: step 1', '1: step 2', '2: evaluation 2'];
  expect(delivered).toEqual([...before, '3: step 2', '4: evaluation 2']);
});
