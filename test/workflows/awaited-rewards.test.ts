import type { temporal } from '@temporalio/proto';
import { describe, expect, test } from 'vitest';

import { progressQuery, rewardsSignal, rollbackUpdate, stopUpdate, pauseUpdate } from '../../workflows/messages.ts';
import { bed } from './bed.ts';
import { CACHES, createGate, eventually, type RunHandle, type RunSetup, untilProgress } from './harness.ts';

/** Rewards that were given so far: `give('1.0', 4)` gives 4 rewards to group 0 of step 1. */
function createRewards() {
  const given = new Map<string, number>();
  const missing = ({ step, group }: { step: number; group: number }) => 4 - (given.get(`${step}.${group}`) ?? 0);
  return { missing, give: (place: string, count = 4) => void given.set(place, count) };
}

const config = { judge: 'external', external: {}, steps: 1 };
const untilAwaited = (handle: RunHandle, missing: number) =>
  untilProgress(handle, ({ awaited }) => awaited?.missing === missing);
/** No activity, no task and no timer is under way: nothing can add to the history. */
async function isAsleep(handle: RunHandle): Promise<boolean> {
  const { raw } = await handle.describe();
  const { events } = await handle.fetchHistory();
  const count = (isOf: (event: temporal.api.history.v1.IHistoryEvent) => unknown) => (events ?? []).filter(isOf).length;
  const timers =
    count((event) => event.timerStartedEventAttributes) -
    count((event) => event.timerFiredEventAttributes ?? event.timerCanceledEventAttributes);
  return (raw.pendingActivities ?? []).length === 0 && (raw.pendingWorkflowTask ?? null) === null && timers === 0;
}

describe('a run with rewards from outside', () => {
  const play = <T>(setup: RunSetup, scene: Parameters<typeof bed.play<T>>[1]) => bed.play(setup, scene);

  test.each(CACHES)(
    'waits until every group is complete, and trains what was given, %s',
    async (_, maxCachedWorkflows) => {
      const { missing, give } = createRewards();
      await play({ maxCachedWorkflows, config, fake: { missing } }, async ({ handle, fake, input }) => {
        const waiting = await untilAwaited(handle, 8);
        expect(waiting).toMatchObject({ phase: 'judge', awaited: { step: 1, attempts: 8, waiting: 2, groups: 2 } });
        const told =
          /^8 of 8 rewards, missing in 2 of 2 open groups \(0 of 2 that step 1 needs are complete\) since \S+Z; see temper rewards (\S+)$/;
        expect(told.exec(waiting.waitingFor!)?.[1]).toBe(input.config.run);
        give('1.1');
        await handle.signal(rewardsSignal);
        await untilAwaited(handle, 4);
        // A signal that brings nothing changes nothing.
        await handle.signal(rewardsSignal);
        await eventually(
          async () => fake.looks.length,
          (looks) => looks === 3,
        );
        give('1.0');
        await handle.signal(rewardsSignal);
        expect(await handle.result()).toMatchObject({ state: 'completed', step: 1, awaited: null, waitingFor: null });
        expect(fake.looks.map(({ groups }) => groups.map(({ group }) => group))).toEqual([[0, 1], [0, 1], [0], [0]]);
        expect(fake.trainings.map(({ groups }) => groups.map(({ group }) => group))).toEqual([[0, 1]]);
      });
    },
  );

  test('sleeps: nothing adds to its history while nothing is given', async () => {
    const { missing } = createRewards();
    await play({ config, fake: { missing } }, async ({ handle }) => {
      await untilAwaited(handle, 8);
      await expect.poll(() => isAsleep(handle)).toBe(true);
      await handle.cancel();
      await expect(handle.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
    });
  });

  test('looks again for rewards that were given while it looked', async () => {
    const { missing, give } = createRewards();
    const [looked, told] = [createGate(), createGate()];
    const after = async (name: string) => {
      if (name !== 'judgeGiven') return;
      looked.open();
      await told.opened;
    };
    await play({ config, fake: { missing, after } }, async ({ handle, fake }) => {
      await looked.opened;
      give('1.0');
      give('1.1');
      await handle.signal(rewardsSignal);
      told.open();
      await expect.poll(() => fake.looks.length).toBe(2);
      expect(await handle.result()).toMatchObject({ state: 'completed', step: 1 });
    });
  });

  test('decides at the deadline with what it has, without being woken', async () => {
    const { missing, give } = createRewards();
    give('1.0', 2);
    const timed = { ...config, external: { timeoutMs: 1500 } };
    await play({ config: timed, fake: { missing } }, async ({ handle, fake }) => {
      await handle.result();
      const waiting = fake.states.map(({ awaited }) => awaited).find((awaited) => awaited?.missing === 6);
      expect(Date.parse(waiting!.nextDeadline!) - Date.parse(waiting!.since)).toBe(1500);
      expect(fake.looks.map(({ groups }) => groups.map(({ over = null }) => over))).toEqual([
        [null, null],
        ['timeout', 'timeout'],
      ]);
    });
  });

  test('waits again after it has continued as new, until the deadline of the next step', async () => {
    const { missing, give } = createRewards();
    give('1.0');
    give('1.1');
    const timed = { ...config, steps: 2, continueAsNewEvery: 1, external: { timeoutMs: 1500 } };
    await play({ config: timed, fake: { missing } }, async ({ handle, fake }) => {
      const { awaited } = await untilProgress(handle, (progress) => progress.awaited?.step === 2);
      expect(Date.parse(awaited!.nextDeadline!) - Date.parse(awaited!.since)).toBe(1500);
      expect(await handle.result()).toMatchObject({ state: 'completed', step: 2, awaited: null });
      expect(fake.looks.map(({ groups }) => groups.map(({ step, over = null }) => [step, over]))).toEqual([
        [
          [1, null],
          [1, null],
        ],
        [
          [2, null],
          [2, null],
        ],
        [
          [2, 'timeout'],
          [2, 'timeout'],
        ],
      ]);
    });
  });

  test('a stop ends the run without the step, which a run that continues takes up again', async () => {
    const { missing } = createRewards();
    await play({ config: { ...config, steps: 3 }, fake: { missing } }, async ({ handle, fake }) => {
      await untilAwaited(handle, 8);
      await handle.executeUpdate(pauseUpdate, { args: [{ reason: null }] });
      expect(await handle.query(progressQuery)).toMatchObject({ state: 'pausing', awaited: { missing: 8 } });
      const answer = await handle.executeUpdate(stopUpdate, { args: [{ reason: null }] });
      expect(answer).toMatchObject({ afterStep: 0 });
      expect(await handle.result()).toMatchObject({ state: 'stopped', step: 0, awaited: null });
      expect(fake.looks.every(({ groups }) => groups.every(({ over }) => over === undefined))).toBe(true);
      expect(fake.trainings).toHaveLength(0);
    });
  });

  test('a rollback gives up the wait, and the step is played again on the new branch', async () => {
    const { missing, give } = createRewards();
    give('1.0');
    give('1.1');
    await play({ config: { ...config, steps: 2 }, fake: { missing } }, async ({ handle, fake }) => {
      await untilProgress(handle, ({ awaited }) => awaited?.step === 2);
      give('2.0');
      give('2.1');
      await handle.executeUpdate(rollbackUpdate, { args: [{ step: 1, settings: null, reason: null }] });
      expect(await handle.result()).toMatchObject({ state: 'completed', step: 2, branch: 1, awaited: null });
      expect(fake.looks.at(-1)).toMatchObject({ branch: 1 });
    });
  });

  test('groups without variance are not replaced: people would be asked again', async () => {
    const { missing, give } = createRewards();
    give('1.0');
    give('1.1');
    const use = ({ group }: { group: number }) => (group === 0 ? ('no-variance' as const) : ('trained' as const));
    await play({ config, fake: { missing, use } }, async ({ handle, fake }) => {
      await handle.result();
      expect(fake.rollouts).toHaveLength(2);
      expect(fake.trainings[0]!.groups.map(({ group }) => group)).toEqual([1]);
    });
  });
});
