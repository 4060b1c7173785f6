/** How far a target was told: the cursor moves once the target has taken what it was told, and only in the worker that has the work. */
import { expect, test } from 'vitest';
import { TemperError } from '../../../core/contract/failures.ts';
import { listTold } from '../../../outbound/describe-telling.ts';
import { SnapshotReader } from '../../../outbound/run-snapshot.ts';
import type { Target } from '../../../outbound/target.ts';
import { tellNext } from '../../../outbound/tell-run.ts';
import { readCursor } from '../../../store/records/production/outbound-cursor.ts';
import { startTrackedRun, tellAll, type TrackedRun } from './tracked-run.ts';

function createTarget(onTold: () => void = () => undefined) {
  const told: string[] = [];
  const target: Target = {
    name: 'fake',
    batch: 100,
    onRollback: 'continue',
    begin: () => Promise.resolve({}),
    async tell(_, rows) {
      told.push(...rows.map(({ kind, step, number }) => `${number}: ${kind} ${step}`));
      onTold();
    },
    end: () => Promise.resolve(),
  };
  return { target, told };
}

const cursorOf = ({ store, run }: TrackedRun) => readCursor(store, run, 'fake');

test('a worker that lost its work meanwhile tells nothing more, and leaves the cursor to the one that has it', async () => {
  const tracked = await startTrackedRun();
  await tracked.step();
  let isLost = false;
  const { target, told } = createTarget(() => (isLost = true));
  const checkFresh = () => {
    if (isLost) throw new Error('another worker has the work');
  };
  const next = async () => {
    const snapshot = (await new SnapshotReader(tracked.store, tracked.run).read())!;
    const scope = { store: tracked.store, signal: new AbortController().signal, checkFresh };
    return tellNext(target, snapshot, { outcome: null, from: 'start' }, scope);
  };
  expect(await next()).toBe(true);
  await expect(next()).rejects.toThrow('another worker has the work');
  expect(await cursorOf(tracked)).toMatchObject({ step: 0, pending: ['s1'] });
  await expect(next()).rejects.toThrow('another worker has the work');
  expect(told).toEqual(['0: step 1']);
  isLost = false;
  await tellAll(tracked, target);
  expect(told).toEqual(['0: step 1', '0: step 1']);
  expect(await cursorOf(tracked)).toMatchObject({ step: 1, pending: null });
});

test('why a target was not told stands beside how far it was told, until it is', async () => {
  const tracked = await startTrackedRun();
  await tracked.step();
  let error: Error | null = new TemperError('DeploymentFailed', 'no such name');
  const { target } = createTarget(() => {
    if (error !== null) throw error;
  });
  const failure = async () => (await listTold(tracked.store, 'demo'))[0]?.failure;
  await tellAll(tracked, target, { tries: 1 }).catch(() => undefined);
  expect([await failure(), (await cursorOf(tracked))?.pending]).toEqual(['no such name', ['s1']]);
  error = null;
  await tellAll(tracked, target);
  expect(await failure()).toBeNull();
});

test('a target that goes on after a rollback is told the steps and evaluations of the new branch', async () => {
  const tracked = await startTrackedRun();
  const { target, told } = createTarget();
  for (let step = 1; step <= 2; step += 1) await tracked.step();
  await tracked.evaluate();
  await tellAll(tracked, target);
  await tracked.rollBack(1);
  await tracked.step();
  await tracked.evaluate();
  await tellAll(tracked, target);
  const before = ['0: step 1', '1: step 2', '2: evaluation 2'];
  expect(told).toEqual([...before, '3: step 2', '4: evaluation 2']);
});
