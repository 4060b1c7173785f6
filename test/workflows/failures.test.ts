import { ApplicationFailure } from '@temporalio/activity';
import { describe, expect, test } from 'vitest';

import type { RolloutInput } from '../../core/contract/contract.ts';
import { bed } from './bed.ts';
import type { ActivityName, FakeOptions } from './fake-activities.ts';
import { CACHES, createGate } from './harness.ts';

/** Throws at the first execution of each piece of work. */
function failOnce(type: string) {
  const seen = new Set<string>();
  return (name: ActivityName, input: unknown) => {
    const { step, group, state } = input as { step?: number; group?: number; state?: { step: number } };
    const work = `${name} ${step ?? state?.step} ${group}`;
    if (seen.has(work)) return;
    seen.add(work);
    throw ApplicationFailure.retryable(`${work} failed once`, type);
  };
}

test.each(['before', 'after'] as const)(
  'an activity that dies %s its work is retried and changes nothing',
  async (at) => {
    const config = { steps: 1 };
    const undisturbed = await bed.play({ config }, async ({ handle, fake }) => (await handle.result(), fake));
    const fake = { [at]: failOnce('EngineFailed') };
    await bed.play({ config, fake }, async ({ handle, fake: disturbed }) => {
      expect((await handle.result()).state).toBe('completed');
      expect(disturbed.done.length).toBe(undisturbed.done.length);
      const adapters = disturbed.summaries.map(({ adapterSha256 }) => adapterSha256);
      expect(adapters).toEqual(undisturbed.summaries.map(({ adapterSha256 }) => adapterSha256));
    });
  },
);

describe.each(CACHES)('a failure that no retry mends, %s', (_, maxCachedWorkflows) => {
  test('ends the run, with its type, and is written', async () => {
    const fakes: FakeOptions = {
      before: (name, input) => {
        if (name !== 'train' || (input as { step: number }).step !== 2) return;
        throw ApplicationFailure.create({ type: 'PolicyMismatch', message: 'sampled by a, trained b' });
      },
    };
    await bed.play({ maxCachedWorkflows, fake: fakes }, async ({ handle, fake }) => {
      await expect(handle.result()).rejects.toMatchObject({
        cause: { type: 'PolicyMismatch', message: 'sampled by a, trained b', nonRetryable: true },
      });
      expect(fake.states.at(-1)).toMatchObject({
        state: 'failed',
        step: 1,
        phase: 'train',
        failure: 'PolicyMismatch: sampled by a, trained b',
      });
    });
  });
});

test('a run that cannot be prepared leaves nothing in the store', async () => {
  const fakes: FakeOptions = {
    before: (name) => {
      if (name === 'prepare') throw ApplicationFailure.create({ type: 'BadConfig', message: 'no scenarios' });
    },
  };
  await bed.play({ fake: fakes }, async ({ handle, fake }) => {
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'BadConfig', message: 'no scenarios' } });
    expect(fake.states).toEqual([]);
  });
});

test.each([
  [{ steps: 9 }, 3, /^every attempt of the last 2 steps failed; .* temper rollback \S+ --step 1$/],
  [{ steps: 9, replacementRounds: 1 }, 3, /^every attempt of the last 2 steps failed/],
  [{ steps: 9, maxStaleness: 1 }, 3, /^every attempt of the last 2 steps failed/],
  [{ steps: 1 }, 1, /^every attempt of step 1 failed; .* --step 0$/],
])('an agent that fails at every attempt ends the run: %j', async (config, step, message) => {
  const isBroken = (group: RolloutInput) => config.steps === 1 || group.step > 1;
  const fakes: FakeOptions = { use: (group) => (isBroken(group) ? 'too-few-attempts' : 'trained') };
  await bed.play({ fake: fakes, config: { replacementRounds: 0, ...config } }, async ({ handle, fake }) => {
    await expect(handle.result()).rejects.toMatchObject({
      cause: { type: 'AgentFailed', message: expect.stringMatching(message) as string },
    });
    expect(fake.states.at(-1)).toMatchObject({ state: 'failed', step });
  });
});

test('a failed group ends the run while the others of its step still play', async () => {
  const never = createGate().opened;
  const fakes: FakeOptions = {
    before: (name, input) => {
      if (name !== 'rollout') return undefined;
      if ((input as RolloutInput).group !== 1) return never;
      throw ApplicationFailure.create({ type: 'BadConfig', message: 'no' });
    },
  };
  await bed.play({ fake: fakes }, async ({ handle, fake }) => {
    await expect.poll(() => fake.states.at(-1)).toMatchObject({ state: 'failed', failure: 'BadConfig: no' });
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'BadConfig' } });
    expect(fake.rollouts).toEqual([]);
  });
});

test('an activity that no worker knows ends the run instead of being retried for ever', async () => {
  await bed.play({ unknown: ['train'] }, async ({ handle, fake }) => {
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'NotFoundError' } });
    expect(fake.states.at(-1)?.failure).toContain('NotFoundError');
  });
});

test('a store that refuses the checkpoint’s records ends the run all the same', async () => {
  const fakes: FakeOptions = {
    before: (name) => {
      if (name !== 'checkpoint') return;
      throw ApplicationFailure.create({ type: 'StoreCorrupt', message: 'no such folder' });
    },
  };
  await bed.play({ fake: fakes }, async ({ handle }) => {
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'StoreCorrupt' } });
  });
});
