import { describe, expect, test } from 'vitest';

import { bed } from './bed.ts';
import { CACHES, SUPERVISED } from './harness.ts';

describe.each(CACHES)('supervised steps, %s', (_, maxCachedWorkflows) => {
  test('alone play no agent, and are handed on by continue-as-new', async () => {
    const config = { steps: 4, continueAsNewEvery: 2, supervised: SUPERVISED };
    await bed.play({ maxCachedWorkflows, config }, async ({ handle, fake }) => {
      const state = await handle.result();
      expect(fake.done.map(({ name }) => name)).toEqual(['prepare', 'initialise', 'train', 'train', 'train', 'train']);
      expect(fake.trainings.map(({ supervised, parent }) => [supervised?.examples.length, parent.step])).toEqual(
        [0, 1, 2, 3].map((step) => [3, step]),
      );
      expect(state).toMatchObject({
        state: 'completed',
        step: 4,
        reward: null,
        evalBefore: null,
        evals: [],
        notes: [],
      });
      expect(fake.summaries.map(({ step, examples }) => [step, examples])).toEqual(
        [1, 2, 3, 4].map((step) => [step, 3]),
      );
    });
  });

  test('come before those of the agent, which samples from the last of them', async () => {
    const config = { steps: 3, supervised: { ...SUPERVISED, steps: 2 } };
    await bed.play({ maxCachedWorkflows, config }, async ({ handle, fake }) => {
      const state = await handle.result();
      expect(fake.done.map(({ name }) => name)).toEqual(
        'prepare initialise evaluate train train evaluate rollout rollout judge train evaluate'.split(' '),
      );
      expect(fake.rollouts.map(({ step, policy }) => [step, policy.step])).toEqual([
        [3, 2],
        [3, 2],
      ]);
      expect(fake.trainings.map(({ supervised, groups }) => [supervised !== undefined, groups.length])).toEqual([
        [true, 0],
        [true, 0],
        [false, 2],
      ]);
      expect(state.evals.map(({ step }) => step)).toEqual([0, 2, 3]);
    });
  });
});
