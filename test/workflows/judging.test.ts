import { describe, expect, test } from 'vitest';

import type { JudgeSpending, RolloutInput } from '../../core/contract/contract.ts';
import { NOTHING_SPENT } from '../../core/rules/judge-spending.ts';
import { REWARD_GROUP } from '../../core/rules/named-rewards.ts';
import { pauseUpdate, resumeUpdate, rollbackUpdate, setUpdate, stopUpdate } from '../../workflows/messages.ts';
import { bed } from './bed.ts';
import { CACHES, holdTraining, type RunHandle, untilPaused, untilProgress } from './harness.ts';

const judge = 'openai/gpt-5-mini';
const spent = (): JudgeSpending => ({ calls: 1, cached: 0, promptTokens: 900, completionTokens: 100, usd: 0.5 });
const set = (handle: RunHandle, maxCostUsd: number) =>
  handle.executeUpdate(setUpdate, { args: [{ settings: { maxCostUsd }, reason: null }] });
const resume = (handle: RunHandle) => handle.executeUpdate(resumeUpdate);

describe.each(CACHES)('a run whose agent names a judge, %s', (_, maxCachedWorkflows) => {
  test('is judged group by group between rollout and train, and trained with what was judged', async () => {
    await bed.play({ maxCachedWorkflows, fake: { spent }, config: { judge } }, async ({ handle, fake }) => {
      const state = await handle.result();
      expect(state).toMatchObject({ state: 'completed', step: 3 });
      expect(state.judging).toEqual({ calls: 6, cached: 0, promptTokens: 5400, completionTokens: 600, usd: 3 });
      const place = ({ step, group }: RolloutInput) => `${step}/${group}`;
      expect(new Set(fake.judgings.map(place))).toEqual(new Set(fake.rollouts.map(place)));
      expect(fake.rollouts.every((rollout) => rollout.judge === judge)).toBe(true);
      expect(fake.trainings.map(({ groups }) => groups.length)).toEqual([2, 2, 2]);
      expect(fake.summaries.map(({ metrics }) => metrics)).toEqual(
        Array.from({ length: 3 }, () =>
          expect.objectContaining({ judgeCalls: 2, judgeCached: 0, judgeTokens: 2000, judgeUsd: 1 }),
        ),
      );
      expect(fake.summaries[0]!.seconds).toMatchObject({ 'rollout.judge': 1 });
    });
  });

  test('is paused before it costs more than was allowed, says how to go on, and goes on so', async () => {
    const config = { judge, maxCostUsd: 1.5, continueAsNewEvery: 1, steps: 4 };
    await bed.play({ maxCachedWorkflows, fake: { spent }, config }, async ({ handle, fake, input }) => {
      const { run } = input.config;
      const paused = await untilPaused(handle);
      expect(paused).toMatchObject({ step: 1, judging: { usd: 1 } });
      const why = `the run has cost $1.00 of maxCostUsd $1.50, the last step $1.00`;
      expect(paused.pause!.reason).toBe(`${why}; temper set ${run} max-cost-usd=N, then temper resume ${run}`);
      await expect(resume(handle)).rejects.toMatchObject({
        cause: {
          message: `${run} cannot be resumed: ${why}; raise the limit first with temper set ${run} max-cost-usd=N`,
        },
      });
      const { changes } = await set(handle, 3);
      expect(changes).toMatchObject([{ setting: 'maxCostUsd', from: 1.5, to: 3 }]);
      await resume(handle);
      await untilProgress(handle, ({ state, step }) => state === 'paused' && step === 3);
      expect(fake.judgings).toHaveLength(6);
      await handle.executeUpdate(stopUpdate, { args: [{ reason: null }] });
      expect(await handle.result()).toMatchObject({ state: 'stopped', step: 3, judging: { usd: 3 } });
    });
  });
});

test('a run whose agent rewards its groups itself is judged so, and tells of no cost', async () => {
  const nothing = () => NOTHING_SPENT;
  await bed.play({ fake: { spent: nothing }, config: { judge: REWARD_GROUP } }, async ({ handle, fake }) => {
    expect(await handle.result()).toMatchObject({ state: 'completed', step: 3, judging: null });
    expect(fake.judgings).toHaveLength(6);
    expect(fake.summaries.flatMap(({ metrics }) => Object.keys(metrics))).not.toContain('judgeCalls');
    expect(fake.summaries[0]!.seconds).toMatchObject({ 'rollout.judge': 1 });
  });
});

test('a run that may spend nothing asks its judge nothing', async () => {
  await bed.play({ fake: { spent }, config: { judge, maxCostUsd: 0 } }, async ({ handle, fake }) => {
    expect(await untilPaused(handle)).toMatchObject({ step: 0, judging: null });
    expect(fake.rollouts).toEqual([]);
  });
});

test('a run is paused before its judge and its hardware exceed the budget, tells its costs, and goes on with more', async () => {
  const config = { judge, maxCostUsd: 1.5, continueAsNewEvery: 1, gpuUsdPerHour: 0 };
  await bed.play({ fake: { spent }, config }, async ({ handle, fake, input }) => {
    const { run } = input.config;
    const paused = await untilPaused(handle);
    expect(paused).toMatchObject({ step: 1, costs: { usd: { gpu: 0, judge: 1 }, maxCostUsd: 1.5 } });
    const why = 'the run has cost $1.00 of maxCostUsd $1.50, the last step $1.00';
    expect(paused.pause!.reason).toBe(`${why}; temper set ${run} max-cost-usd=N, then temper resume ${run}`);
    await expect(resume(handle)).rejects.toMatchObject({ cause: { message: expect.stringContaining(why) as string } });
    const settings = { maxCostUsd: 9 };
    await handle.executeUpdate(setUpdate, { args: [{ settings, reason: null }] });
    await resume(handle);
    const { costs } = await handle.result();
    expect(costs).toMatchObject({ usd: { gpu: 0, judge: 3 }, maxCostUsd: 9 });
    const lines = fake.summaries.map((summary) => summary.costs!);
    expect(lines.map(({ usd, cumulativeUsd }) => [usd, cumulativeUsd])).toEqual(
      [1, 2, 3].map((sum) => [{ gpu: 0, judge: 1 }, sum]),
    );
    const seconds = lines.reduce((sum, line) => sum + line.seconds, 0);
    expect(costs!.seconds).toBeGreaterThanOrEqual(seconds);
  });
});

test('a run that may work for no hour waits for more, and pauses count as no work', async () => {
  await bed.play({ config: { maxHours: 0 } }, async ({ handle, fake }) => {
    const { pause, costs } = await untilPaused(handle);
    expect(pause!.reason).toMatch(/^the run has worked \S+ h of maxHours 0 h; temper set \S+ max-hours=N/);
    expect(fake.rollouts).toEqual([]);
    await handle.executeUpdate(setUpdate, { args: [{ settings: { maxHours: 1 }, reason: null }] });
    await resume(handle);
    const state = await handle.result();
    expect(state).toMatchObject({ state: 'completed', step: 3, costs: { maxHours: 1, usd: {} } });
    expect(state.costs!.seconds).toBeGreaterThanOrEqual(costs!.seconds);
    // A sum of parts of it, so beyond it by its rounding at most.
    expect(state.costs!.seconds).toBeLessThan(state.wallSeconds + 1e-6);
  });
});

test('a bound is given to a run that had none', async () => {
  const held = holdTraining(1);
  await bed.play({ fake: { ...held, spent }, config: { judge } }, async ({ handle }) => {
    await held.reached;
    expect((await set(handle, 1)).changes).toMatchObject([{ from: null, to: 1 }]);
    held.release();
    expect(await untilPaused(handle)).toMatchObject({ step: 1 });
  });
});

test('a judge without a price is named beside the costs', async () => {
  const unknown = (): JudgeSpending => ({ ...spent(), usd: null });
  await bed.play({ fake: { spent: unknown }, config: { judge } }, async ({ handle }) => {
    const state = await handle.result();
    expect(state).toMatchObject({ judging: { calls: 6, usd: null }, costs: { usd: {}, unpriced: [judge] } });
  });
});

test('a run without a price has no bound to be set', async () => {
  const held = holdTraining(1);
  await bed.play({ fake: held }, async ({ handle }) => {
    await held.reached;
    await expect(set(handle, 1)).rejects.toMatchObject({
      cause: { message: expect.stringContaining('while nothing of the run has a price') as string },
    });
    await handle.executeUpdate(pauseUpdate, { args: [{ reason: null }] });
    held.release();
    await untilPaused(handle);
    await resume(handle);
    expect(await handle.result()).toMatchObject({ state: 'completed', judging: null });
  });
});

test('a group that the judge finds all alike is replaced, as any other without a signal', async () => {
  const use = ({ group }: RolloutInput) => (group === 0 ? ('no-variance' as const) : ('trained' as const));
  await bed.play({ fake: { spent, use }, config: { judge, steps: 2 } }, async ({ handle, fake }) => {
    await handle.result();
    expect(fake.judgings).toHaveLength(6);
    expect(fake.summaries.map(({ groups, replacedGroups }) => [groups, replacedGroups])).toEqual([
      [2, 1],
      [2, 1],
    ]);
  });
});

test('what was paid stays paid when a run goes back', async () => {
  const held = holdTraining(2);
  await bed.play({ fake: { ...held, spent }, config: { judge } }, async ({ handle }) => {
    await held.reached;
    await handle.executeUpdate(rollbackUpdate, { args: [{ step: 0, settings: null, reason: null }] });
    held.release();
    const state = await handle.result();
    expect(state).toMatchObject({ state: 'completed', step: 3, branch: 1, judging: { usd: 5 } });
  });
});
