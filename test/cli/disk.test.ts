import { expect, test } from 'vitest';
import { describeDisk, forecastDisk } from '../../cli/watch/disk.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { runKey, stateKey } from '../../store/layout.ts';
import { readRun, readState, readSteps } from '../../store/records/runs/run-reader.ts';
import { makeRun } from '../store/records/made-run.ts';
import { temporaryStore } from '../temporary-folder.ts';

const SIZE = { adapter: 20, optimizer: 40 };

test('a run of 200 steps stores the weights of a few checkpoints, a short one those of all', () => {
  expect(forecastDisk({ steps: 200, evalEvery: 10 }, SIZE)).toEqual({
    all: 201 * 60,
    // Step 0, a best one and 19 newest; adapters of 10, 20, … 190 but for the best.
    kept: 21 * 60 + 18 * 20,
  });
  expect(forecastDisk({ steps: 200, evalEvery: 0 }, SIZE).kept).toBe(20 * 60);
  expect(forecastDisk({ steps: 8, evalEvery: 2 }, SIZE)).toEqual({ all: 9 * 60, kept: 9 * 60 });
});

test('a young run says what it will store, with and without --keep-all', async () => {
  const store = temporaryStore();
  await makeRun(store, { steps: 3 });
  const state = { ...(await readState(store, 'demo'))!, state: 'running' as const, step: 1, steps: 100 };
  await store.replace(stateKey('demo'), encodeJson(state));
  const steps = (await readSteps(store, 'demo')).slice(0, 1);
  expect(await describeDisk(store, { state, steps })).toMatch(
    /^disk: each checkpoint takes [\d.]+ k?B, the run at most [\d.]+ k?B \([\d.]+ k?B with --keep-all\)$/,
  );
  for (const old of [{ step: 4 }, { state: 'completed' as const }])
    expect(await describeDisk(store, { state: { ...state, ...old }, steps })).toBeNull();
  expect(await describeDisk(store, { state, steps: [] })).toBeNull();
  const { config, ...file } = (await readRun(store, 'demo'))!.file;
  await store.replace(runKey('demo'), encodeJson({ ...file, config: { ...config, keepAll: true } }));
  expect(await describeDisk(store, { state, steps })).toMatch(
    /^disk: each checkpoint takes [\d.]+ k?B, all [\d.]+ k?B$/,
  );
});
