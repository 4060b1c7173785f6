import { describe, expect, test } from 'vitest';

import type { CheckpointInput, StepSummary } from '../../core/contract/contract.ts';
import { planLearningRate } from '../../core/numbers/learning-rate.ts';
import type { Settings } from '../../core/rules/settings.ts';
import { progressQuery, setUpdate } from '../../workflows/messages.ts';
import { bed } from './bed.ts';
import { CACHES, createGate, holdTraining, type RunHandle, untilProgress } from './harness.ts';

const set = (handle: RunHandle, settings: Settings, reason: string | null = null) =>
  handle.executeUpdate(setUpdate, { args: [{ settings, reason }] });

const ALL: Settings = { learningRate: 0.5, temperature: 0.25, steps: 5, groupSize: 3, evalEvery: 4 };

describe.each(CACHES)('settings, %s', (_, maxCachedWorkflows) => {
  test.each([[null], [1]])('are in effect from the next plan on (continue-as-new every %s)', async (every) => {
    const held = holdTraining(2);
    const config = { steps: 3, continueAsNewEvery: every };
    await bed.play({ maxCachedWorkflows, fake: held, config }, async ({ handle, fake, input }) => {
      await held.reached;
      const { changes } = await set(handle, ALL, 'too slow');
      expect(changes.map(({ setting, from, to, step }) => [setting, from, to, step])).toEqual([
        ['learningRate', 0.01, 0.5, 3],
        ['temperature', 1, 0.25, 3],
        ['steps', 3, 5, 3],
        ['groupSize', 4, 3, 3],
        ['evalEvery', 0, 4, 3],
      ]);
      // Shown at once, and kept in the store before the step that it changes.
      expect(fake.states.at(-1)).toMatchObject({ changes, steps: 5 });
      expect(fake.amendments).toEqual([]);
      held.release();
      const state = await handle.result();
      expect(state).toMatchObject({ state: 'completed', step: 5, steps: 5, changes });
      expect(fake.amendments).toEqual([{ run: input.config.run, number: 1, changes }]);
      expect(fake.rollouts.map(({ step, attempts, rollout }) => [step, attempts, rollout.temperature])).toEqual(
        [1, 1, 2, 2, 3, 3, 4, 4, 5, 5].map((step) => [step, step < 3 ? 4 : 3, step < 3 ? 1 : 0.25]),
      );
      const changed = { ...input.config, learningRate: 0.5, steps: 5 };
      expect(fake.trainings.map(({ learningRate }) => learningRate)).toEqual([
        planLearningRate(input.config, 1),
        planLearningRate(input.config, 2),
        ...[3, 4, 5].map((step) => planLearningRate(changed, step)),
      ]);
      expect(state.evals.map(({ step }) => step)).toEqual([0, 4, 5]);
      expect(fake.summaries.map(({ learningRate }) => learningRate)).toEqual(
        fake.trainings.map(({ learningRate }) => learningRate),
      );
    });
  });

  test('that are told twice are changed once; the last word counts', async () => {
    const held = holdTraining(1);
    await bed.play({ maxCachedWorkflows, fake: held }, async ({ handle, fake }) => {
      await held.reached;
      expect((await set(handle, { learningRate: 0.5 })).changes).toHaveLength(1);
      expect((await set(handle, { learningRate: 0.5 })).changes).toEqual([]);
      expect((await set(handle, { learningRate: 0.01 })).changes).toMatchObject([{ from: 0.5, to: 0.01 }]);
      held.release();
      const { changes } = await handle.result();
      expect(changes.map(({ from, to, step }) => [from, to, step])).toEqual([
        [0.01, 0.5, 2],
        [0.5, 0.01, 2],
      ]);
      expect(fake.amendments.map(({ number }) => number)).toEqual([1, 2]);
    });
  });

  test('that come with the last step in hand lengthen the run', async () => {
    const held = holdTraining(2);
    await bed.play({ maxCachedWorkflows, fake: held, config: { steps: 2 } }, async ({ handle }) => {
      await held.reached;
      await set(handle, { steps: 3 });
      held.release();
      expect(await handle.result()).toMatchObject({ state: 'completed', step: 3, steps: 3 });
    });
  });

  test('that make the step in hand the last one end the run with its evaluation', async () => {
    const held = holdTraining(2);
    await bed.play({ maxCachedWorkflows, fake: held, config: { steps: 20 } }, async ({ handle, fake }) => {
      await held.reached;
      await set(handle, { steps: 2 });
      held.release();
      expect(await handle.result()).toMatchObject({ state: 'completed', step: 2, steps: 2, evalAfter: { step: 2 } });
      expect(fake.amendments).toHaveLength(1);
    });
  });
});

test('what cannot be is refused with what to do, and changes nothing', async () => {
  const held = holdTraining(2);
  await bed.play({ fake: held }, async ({ handle, fake }) => {
    await held.reached;
    const refusals: [unknown, string][] = [
      [{ settings: { steps: 1 }, reason: null }, 'steps must be more than the 1 that are done, got 1'],
      [{ settings: { groupSize: 1 }, reason: null }, 'groupSize must be a whole number of at least 2 (an advantage'],
      [{ settings: { loss: 1 }, reason: null }, 'loss cannot be changed after a run has started'],
      [{ settings: {}, reason: null }, 'nothing to set; name at least one of'],
      [{ settings: null, reason: null }, 'must be an object'],
      [{ settings: { steps: 9 }, reason: 7 }, 'a reason must be null or text'],
      [null, 'a reason must be null or text'],
    ];
    for (const [request, message] of refusals) {
      const told = handle.executeUpdate<unknown, [unknown]>('set', { args: [request] });
      await expect(told).rejects.toMatchObject({ cause: { message: expect.stringContaining(message) as string } });
    }
    expect((await handle.query(progressQuery)).changes).toEqual([]);
    held.release();
    expect(await handle.result()).toMatchObject({ state: 'completed', step: 3, changes: [] });
    expect(fake.amendments).toEqual([]);
  });
});

test('are stored after the position before them, so that a run that continues takes no step again under others', async () => {
  const held = holdTraining(2);
  const slow = createGate();
  const stored: number[][] = [];
  const summaries: StepSummary[] = [];
  const before = async (name: string, input: unknown): Promise<void> => {
    await held.before(name, input);
    if (name === 'amend') stored.push(summaries.map(({ step }) => step));
    if (name !== 'checkpoint') return;
    const { summary } = input as CheckpointInput;
    if (summary.step === 2) await slow.opened;
    summaries.push(summary);
  };
  await bed.play({ fake: { before } }, async ({ handle }) => {
    await held.reached;
    await set(handle, { learningRate: 0.5 });
    held.release();
    await untilProgress(handle, ({ step }) => step === 2);
    slow.open();
    await handle.result();
    expect(stored).toEqual([[1, 2]]);
  });
});
