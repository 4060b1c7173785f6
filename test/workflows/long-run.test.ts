import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';

import type { GroupResult, RolloutInput } from '../../core/contract.ts';
import { createGate, eventually, openTestBed, type TestBed } from './harness.ts';

let bed: TestBed;
beforeAll(async () => {
  bed = await openTestBed(inject('temporalAddress'), inject('workflowBundle'));
});
afterAll(() => bed.close());

const STEPS = 150;
const EVERY = 10;

/** A third of the steps have nothing to train; evaluations and notes are carried along. */
test('a run of 150 steps that continues as new every ten leaves histories of one size, and one counted note', async () => {
  const config = { steps: STEPS, continueAsNewEvery: EVERY, evalEvery: 5, replacementRounds: 0, groupsPerStep: 1 };
  const use = ({ step }: RolloutInput): GroupResult['use'] => (step % 3 === 0 ? 'no-variance' : 'trained');
  await bed.play({ config, fake: { use } }, async ({ handle, client, fake }) => {
    const state = await handle.result();
    expect(state).toMatchObject({ state: 'completed', step: STEPS });
    expect(state.notes).toEqual([
      '50 of 150 steps were skipped, most recently step 150: every group had identical rewards (no learning signal); the policy is unchanged',
    ]);
    expect(state.evals).toHaveLength(1 + STEPS / 5);
    expect(fake.summaries.map(({ step }) => step)).toEqual(Array.from({ length: STEPS }, (_, index) => index + 1));

    const histories = await listHistories(client, handle.workflowId);
    const [, second, ...later] = histories;
    const last = later.at(-2);
    expect(histories).toHaveLength(STEPS / EVERY);
    expect(Math.max(...histories.map(({ events }) => events))).toBeLessThan(60 * EVERY);
    // What is carried and recorded for people may grow up to its bounds; a history of ten steps stays far from a megabyte.
    expect(last!.bytes).toBeLessThan(2 * second!.bytes);
    expect(last!.bytes).toBeLessThan(500_000);
  });
});

test('a step of 1,200 groups is played 500 at a time, in plan order, and trains all of them', async () => {
  const gate = createGate();
  const before = (name: string) => (name === 'rollout' ? gate.opened : undefined);
  const config = { steps: 1, groupsPerStep: 1200, replacementRounds: 0 };
  await bed.play({ config, fake: { before, trainScenarios: 1200 } }, async ({ handle, fake }) => {
    const pending = async () => (await handle.describe()).raw.pendingActivities?.length ?? 0;
    await eventually(pending, (count) => count === 500);
    gate.open();
    const state = await handle.result();
    expect(state).toMatchObject({ state: 'completed', step: 1 });
    const all = Array.from({ length: 1200 }, (_, group) => group);
    expect(fake.trainings[0]?.groups.map(({ group }) => group)).toEqual(all);
    expect(fake.summaries[0]).toMatchObject({ groups: 1200 });
  });
});

async function listHistories(client: Client, workflowId: string): Promise<{ events: number; bytes: number }[]> {
  const list = async () => {
    const found: { events: number; bytes: number; startMs: number }[] = [];
    for await (const execution of client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
      const { historyLength: events, historySize: bytes = 0, startTime } = execution;
      found.push({ events, bytes, startMs: startTime.getTime() });
    }
    return found.toSorted((a, b) => a.startMs - b.startMs);
  };
  // Visibility lags behind.
  return eventually(list, (found) => found.length === STEPS / EVERY && found.every(({ events }) => events > 0));
}
