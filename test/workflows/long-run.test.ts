import type { Client } from '@temporalio/client';
import { expect, test } from 'vitest';

import type { GroupResult, RolloutInput } from '../../core/contract/contract.ts';
import { NOTHING_SPENT } from '../../core/rules/judge-spending.ts';
import { isNightly } from '../run/tier.ts';
import { bed } from './bed.ts';
import { createGate, eventually, type RunHandle } from './harness.ts';

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
    // State carried and recorded for people may grow up to its bounds; a history of ten steps stays far from a megabyte.
    expect(last!.bytes).toBeLessThan(2 * second!.bytes);
    expect(last!.bytes).toBeLessThan(500_000);
  });
});

test('a step of 1,200 groups is played 500 at a time, in plan order, and trains all of them', async () => {
  const gate = createGate();
  const before = (name: string) => (name === 'rollout' ? gate.opened : undefined);
  const config = { steps: 1, groupsPerStep: 1200, replacementRounds: 0 };
  await bed.play({ config, fake: { before, trainScenarios: 1200 } }, async ({ handle, fake }) => {
    await eventually(
      () => countPending(handle, 'rollout'),
      (count) => count === 500,
    );
    gate.open();
    const state = await handle.result();
    expect(state).toMatchObject({ state: 'completed', step: 1 });
    const all = Array.from({ length: 1200 }, (_, group) => group);
    expect(fake.trainings[0]?.groups.map(({ group }) => group)).toEqual(all);
    expect(fake.summaries[0]).toMatchObject({ groups: 1200 });
  });
});

/** Pending activities of one kind: whether what is told to people waits behind those is left to the server. */
async function countPending(handle: RunHandle, kind: string): Promise<number> {
  const { raw } = await handle.describe();
  return (raw.pendingActivities ?? []).filter(({ activityType }) => activityType?.name === kind).length;
}

/** Bounds of Temporal: events and bytes of a history, bytes of what an activity is given and answers. */
const TAKEN = { events: 51_200, historyBytes: 50_000_000, payloadBytes: 2 * 1024 ** 2 };

const MINUTES = 900_000;

/** Judged, and every group of the first round is replaced: 4,000 groups. Minutes: only in the nightly tier. */
test.runIf(isNightly())(
  'the largest step, with a judge and replacements, stays within what Temporal takes',
  { timeout: MINUTES },
  async () => {
    const groupsPerStep = 2000;
    const use = ({ group }: RolloutInput): GroupResult['use'] => (group < groupsPerStep ? 'no-variance' : 'trained');
    const spent = () => ({ ...NOTHING_SPENT, calls: 1, promptTokens: 2, usd: 0.001 });
    const config = { steps: 1, groupsPerStep, groupSize: 8, replacementRounds: 1, judge: 'openai/gpt-5-mini' };
    await bed.play({ config, fake: { use, spent, trainScenarios: 300 } }, async ({ handle, fake }) => {
      const state = await handle.result();
      expect(state).toMatchObject({ state: 'completed', step: 1, judging: { calls: 2 * groupsPerStep } });
      expect(fake.summaries[0]).toMatchObject({ groups: groupsPerStep, replacedGroups: groupsPerStep });
      const last = Array.from({ length: groupsPerStep }, (_, index) => groupsPerStep + index);
      expect(fake.trainings[0]?.groups.map(({ group }) => group)).toEqual(last);

      const { events } = await handle.fetchHistory();
      const { raw } = await handle.describe();
      const bytes = Number(raw.workflowExecutionInfo?.historySizeBytes);
      const payloads = events!.flatMap((event) => [
        event.activityTaskScheduledEventAttributes?.input,
        event.activityTaskCompletedEventAttributes?.result,
      ]);
      const sizes = payloads.map((each) =>
        (each?.payloads ?? []).reduce((sum, { data }) => sum + (data?.length ?? 0), 0),
      );
      expect(events!.length).toBeLessThan(TAKEN.events);
      expect(bytes).toBeLessThan(TAKEN.historyBytes);
      expect(Math.max(...sizes)).toBeLessThan(TAKEN.payloadBytes);
    });
  },
);

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
