import { expect, test } from 'vitest';
import { SnapshotReader } from '../../../outbound/run-snapshot.ts';
import { addToCurve } from '../../../store/records/runs/curve.ts';
import { readSteps } from '../../../store/records/runs/run-reader.ts';
import { summary } from '../../cli/fixture-store.ts';
import { startTrackedRun } from './tracked-run.ts';

test('a curve that grows over several files, and after a rollback, is read as it is', async () => {
  const tracked = await startTrackedRun();
  const { store, run } = tracked;
  const reader = new SnapshotReader(store, run);
  const grow = async (from: number, to: number) => {
    const { branch } = tracked.state;
    const lines = Array.from({ length: to - from }, (_, index) => summary(from + index + 1, 400 + branch));
    await addToCurve(store, run, { branch, step: to }, lines, () => undefined);
    await tracked.set({ step: to });
    expect((await reader.read())?.steps).toEqual(await readSteps(store, run));
  };
  await grow(0, 99);
  await grow(99, 100);
  await grow(100, 205);
  await tracked.rollBack(150);
  expect((await reader.read())?.steps).toHaveLength(150);
  await grow(150, 160);
  await grow(160, 301);
  expect((await reader.read())?.steps).toHaveLength(301);
});
