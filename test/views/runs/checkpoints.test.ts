import { expect, test } from 'vitest';

import { writeUiStore } from '../../../bench/ui/write-store.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import * as layout from '../../../store/layout.ts';
import { readCheckpoint } from '../../../store/records/runs/find-checkpoint.ts';
import { recordPromotion } from '../../../store/records/runs/promotions.ts';
import { markPruned } from '../../../store/records/runs/pruned.ts';
import { readSteps } from '../../../store/records/runs/run-reader.ts';
import type { Store } from '../../../store/store.ts';
import { NotFound } from '../../../views/context/context.ts';
import { viewCheckpoints } from '../../../views/runs/checkpoints.ts';
import { contextOf } from '../context.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

async function smallRun(): Promise<Store> {
  return writeUiStore({ folder: temporaryFolder(), run: 'demo', steps: 3, attempts: 2, groups: 1, turns: 1 });
}

test('checkpoints are listed newest first, with the curve’s reward and what each is called', async () => {
  const store = await smallRun();
  const rows = await viewCheckpoints(contextOf(store), 'demo');
  expect(rows.map(({ step, name }) => [step, name])).toEqual([
    [3, 'demo@3'],
    [2, 'demo@2'],
    [1, 'demo@1'],
    [0, 'demo@0'],
  ]);
  const curve = await readSteps(store, 'demo');
  expect(rows.slice(0, 3).map(({ reward }) => reward)).toEqual(curve.toReversed().map(({ reward }) => reward));
  expect(rows[0]!.evaluation).toMatchObject({ step: 3 });
  expect(new Set(rows.map(({ weights, isProduction }) => `${weights} ${isProduction}`))).toEqual(
    new Set(['kept false']),
  );
});

test('weights that were pruned, a promotion and a branch that was left are told; weights are looked for again later', async () => {
  const store = await smallRun();
  let now = 0;
  const context = contextOf(store, { now: () => now });
  const earned = (await viewCheckpoints(context, 'demo')).map(({ reward }) => reward);
  await markPruned(store, { run: 'demo', branch: 0, step: 1 }, true);
  const checkpoint = (await readCheckpoint(store, { run: 'demo', branch: 0, step: 2 }))!;
  const promotion = { kind: 'promoted', checkpoint, by: null, reason: null, evaluation: null } as const;
  await recordPromotion(store, 'demo', { ...promotion, comparison: null, key: null });
  const branch = { schema: 1, branch: 1, fromBranch: 0, fromStep: 2, requestId: 'r' };
  await store.publish(layout.branchKey('demo', 1), encodeJson(branch));
  now = 60_000;
  const rows = await viewCheckpoints(context, 'demo');
  expect(rows.map(({ step, name, weights, isProduction }) => [step, name, weights, isProduction])).toEqual([
    [3, null, 'kept', false],
    [2, 'demo@2', 'kept', true],
    [1, 'demo@1', 'pruned', false],
    [0, 'demo@0', 'kept', false],
  ]);
  expect(rows.map(({ reward }) => reward)).toEqual(earned);
});

test('a run that there is not has no checkpoints', async () => {
  await expect(viewCheckpoints(contextOf(await smallRun()), 'none')).rejects.toBeInstanceOf(NotFound);
});
