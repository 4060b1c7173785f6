import { describe, expect, test } from 'vitest';

import { rewardsSignal, rollbackUpdate, stopUpdate } from '../../workflows/messages.ts';
import { bed } from './bed.ts';
import type { FakeRun } from './fake-activities.ts';
import { CACHES, type RunHandle, untilProgress } from './harness.ts';

/** Groups whose rewards were given: `give('1.0', '1.2')`. */
function createRewards() {
  const given = new Set<string>();
  const missing = ({ step, group }: { step: number; group: number }) => (given.has(`${step}.${group}`) ? 0 : 4);
  return { missing, give: (...places: string[]) => places.forEach((place) => given.add(place)) };
}

const config = { judge: 'external', external: {}, steps: 3, groupsAhead: 2, maxRewardStaleness: 2 };
const untilAwaited = (handle: RunHandle, waiting: number) =>
  untilProgress(handle, ({ awaited }) => awaited?.waiting === waiting);
const trained = ({ trainings }: FakeRun) =>
  trainings.map(({ step, groups }) => groups.map((ref) => `${ref.step ?? step}.${ref.group}`).join(' '));

describe('a run that plays groups ahead', () => {
  test.each(CACHES)(
    'trains the first groups that are complete, sampled by any of the newest policies, %s',
    async (_, maxCachedWorkflows) => {
      const { missing, give } = createRewards();
      await bed.play({ maxCachedWorkflows, config, fake: { missing } }, async ({ handle, fake }) => {
        const first = await untilAwaited(handle, 4);
        expect(first.awaited).toMatchObject({ step: 1, waiting: 4, groups: 4, complete: 0, needed: 2 });
        give('1.1', '1.3');
        await handle.signal(rewardsSignal);
        await untilProgress(handle, ({ step, awaited }) => step === 1 && awaited?.waiting === 4);
        give('1.2', '2.1');
        await handle.signal(rewardsSignal);
        await untilProgress(handle, ({ step, awaited }) => step === 2 && awaited?.waiting === 4);
        give('3.0', '3.1');
        await handle.signal(rewardsSignal);
        const state = await handle.result();
        expect(state.notes.at(-1)).toBe(
          '1 group is still open, 1 waiting for rewards; a run that continues trains them',
        );
        expect(trained(fake)).toEqual(['1.1 1.3', '1.2 2.1', '3.0 3.1']);
        const sampled = fake.rollouts.map(({ step, group, policy }) => `${step}.${group} by ${policy.step}`);
        expect(sampled.toSorted()).toEqual([
          '1.0 by 0',
          '1.1 by 0',
          '1.2 by 0',
          '1.3 by 0',
          '2.0 by 1',
          '2.1 by 1',
          '3.0 by 2',
          '3.1 by 2',
        ]);
        expect(fake.trainings.map(({ samplers }) => samplers?.map((each) => [each.step, each.staleness]))).toEqual([
          undefined,
          [[0, 1]],
          undefined,
        ]);
      });
    },
  );

  test('leaves out groups that wait for too long, and counts them by name', async () => {
    const { missing, give } = createRewards();
    const short = { ...config, steps: 4, maxRewardStaleness: 1 };
    await bed.play({ config: short, fake: { missing } }, async ({ handle, fake }) => {
      await untilAwaited(handle, 4);
      give('1.2', '1.3', '2.0', '2.1', '3.2', '3.3', '4.0', '4.1');
      await handle.signal(rewardsSignal);
      await handle.result();
      expect(trained(fake)).toEqual(['1.2 1.3', '2.0 2.1', '3.2 3.3', '4.0 4.1']);
      expect(fake.summaries.map(({ unused }) => unused)).toEqual([{}, {}, { stale: 2 }, {}]);
      const closed = fake.looks.flatMap(({ groups }) => groups.filter(({ over }) => over === 'stale'));
      expect(closed.map(({ step, group }) => `${step}.${group}`)).toEqual(['1.0', '1.1']);
    });
  });

  test('keeps all groups of a stopped run open, and takes no step', async () => {
    const { missing, give } = createRewards();
    await bed.play({ config, fake: { missing } }, async ({ handle, fake }) => {
      await untilAwaited(handle, 4);
      give('1.1');
      const answer = await handle.executeUpdate(stopUpdate, { args: [{ reason: null }] });
      expect(answer).toMatchObject({ afterStep: 0 });
      const state = await handle.result();
      expect(state).toMatchObject({ state: 'stopped', step: 0, awaited: null });
      expect(state.notes.at(-1)).toMatch(/^4 groups are still open, 3 waiting for rewards/);
      expect(fake.trainings).toEqual([]);
      expect(fake.looks.flatMap(({ groups }) => groups.flatMap(({ over }) => over ?? []))).toEqual([]);
    });
  });

  test('carries its window across continue-as-new', async () => {
    const { missing, give } = createRewards();
    give('1.1', '1.3', '2.0', '2.1', '1.0', '3.0');
    const short = { ...config, continueAsNewEvery: 1 };
    await bed.play({ config: short, fake: { missing } }, async ({ handle, fake }) => {
      await handle.result();
      expect(trained(fake)).toEqual(['1.0 1.1', '1.3 2.0', '2.1 3.0']);
    });
  });

  test('gets back the groups that were open when the run goes back', async () => {
    const { missing, give } = createRewards();
    give('1.1', '1.2', '1.3', '2.0');
    await bed.play({ config, fake: { missing } }, async ({ handle, fake }) => {
      await untilProgress(handle, ({ step, awaited }) => step === 2 && awaited !== null);
      await handle.executeUpdate(rollbackUpdate, { args: [{ step: 1, settings: null, reason: null }] });
      give('2.1', '3.0');
      await handle.signal(rewardsSignal);
      await handle.result();
      expect(trained(fake)).toEqual(['1.1 1.2', '1.3 2.0', '1.3 2.0', '2.1 3.0']);
      const again = fake.trainings[2]!;
      expect(again.branch).toBe(1);
      expect(again.groups.map(({ step, branch }) => [step, branch])).toEqual([
        [1, 0],
        [undefined, undefined],
      ]);
    });
  });
});
