import { describe, expect, test } from 'vitest';

import type { StepSummary } from '../../core/contract/contract.ts';
import { planLearningRate } from '../../core/numbers/learning-rate.ts';
import { bed } from './bed.ts';
import type { FakeOptions } from './fake-activities.ts';
import { CACHES, createGate, type RunHandle } from './harness.ts';

describe.each(CACHES)('a run, %s', (_, maxCachedWorkflows) => {
  test('prepares, initialises, evaluates, takes its steps, evaluates and is done', async () => {
    await bed.play({ maxCachedWorkflows }, async ({ handle, fake, input }) => {
      const state = await handle.result();
      expect(fake.done.map(({ name }) => name)).toEqual([
        'prepare',
        'initialise',
        'evaluate',
        ...Array.from({ length: 3 }, () => ['rollout', 'rollout', 'judge', 'train']).flat(),
        'evaluate',
      ]);
      expect(state).toMatchObject({
        run: input.config.run,
        state: 'completed',
        phase: 'done',
        step: 3,
        waitingFor: null,
        failure: null,
        notes: [],
        evalBefore: { step: 0, metrics: { winRate: 0 } },
        evalAfter: { step: 3, metrics: { winRate: 0.3 } },
      });
      expect(state.wallSeconds).toBeGreaterThan(0);
    });
  });

  test('plays each step by the checkpoint before it and trains its groups in plan order', async () => {
    await bed.play({ maxCachedWorkflows }, async ({ handle, fake, input }) => {
      const state = await handle.result();
      expect(fake.rollouts.map(({ step, policy }) => [step, policy.step])).toEqual(
        [1, 1, 2, 2, 3, 3].map((step) => [step, step - 1]),
      );
      expect(fake.trainings.map(({ parent }) => parent.step)).toEqual([0, 1, 2]);
      expect(fake.trainings.map(({ groups }) => groups.map(({ group }) => group))).toEqual([
        [0, 1],
        [0, 1],
        [0, 1],
      ]);
      expect(fake.trainings.map(({ learningRate }) => learningRate)).toEqual(
        [1, 2, 3].map((step) => planLearningRate(input.config, step)),
      );
      expect(state.adapterSha256).toBe(fake.summaries.at(-1)?.adapterSha256);
    });
  });

  test('records each step once, in order, and its end', async () => {
    await bed.play({ maxCachedWorkflows }, async ({ handle, fake }) => {
      const state = await handle.result();
      expect(fake.summaries.map(({ step }) => step)).toEqual([1, 2, 3]);
      expect(fake.states.at(-1)).toEqual(state);
      expect(fake.summaries[0]).toMatchObject({ groups: 2, replacedGroups: 0, attempts: 8, sampledTokens: 80 });
      expect(Object.keys(fake.summaries[0]?.seconds ?? {})).toEqual([
        'rollout',
        'judge',
        'train',
        'step',
        'trainer.train',
      ]);
    });
  });

  test('evaluates every n steps and after the last, once each', async () => {
    await bed.play({ maxCachedWorkflows, config: { steps: 4, evalEvery: 2 } }, async ({ handle }) => {
      const { evals } = await handle.result();
      expect(evals.map(({ step }) => step)).toEqual([0, 2, 4]);
    });
  });
});

test('a step is played while the checkpoint before it is still written', async () => {
  const never = createGate().opened;
  const fakes: FakeOptions = { before: (name) => (name === 'checkpoint' ? never : undefined) };
  await bed.play({ fake: fakes, config: { steps: 2 } }, async ({ fake }) => {
    await expect.poll(() => fake.rollouts.map(({ step }) => step)).toContain(2);
    expect(fake.summaries).toEqual([]);
  });
});

test('a checkpoint is written after the one before it', async () => {
  const written = createGate();
  const fakes: FakeOptions = {
    before: (name, input) =>
      name === 'checkpoint' && (input as { summary: StepSummary }).summary.step === 1 ? written.opened : undefined,
  };
  await bed.play({ fake: fakes, config: { steps: 2 } }, async ({ handle, fake }) => {
    await expect.poll(() => fake.trainings.length).toBe(2);
    await expect.poll(() => underWay(handle)).toEqual(['checkpoint']);
    expect(fake.summaries).toEqual([]);
    written.open();
    await handle.result();
    expect(fake.summaries.map(({ step }) => step)).toEqual([1, 2]);
  });
});

/** Activities under way, once the workflow itself has done what it could. */
async function underWay(handle: RunHandle): Promise<(string | null | undefined)[] | null> {
  const { raw } = await handle.describe();
  if (raw.pendingWorkflowTask) return null;
  return (raw.pendingActivities ?? []).map(({ activityType }) => activityType?.name);
}

test('two runs of one plan under two names have the same inputs and the same bytes', async () => {
  const first = await bed.play({}, async ({ handle, fake }) => (await handle.result(), fake));
  const second = await bed.play({}, async ({ handle, fake }) => (await handle.result(), fake));
  const hashes = (fake: typeof first) => [
    ...fake.rollouts.map(({ step, group, inputsSha256 }) => `${step}/${group}/${inputsSha256}`).toSorted(),
    ...fake.trainings.map(({ inputsSha256 }) => inputsSha256),
    ...fake.evaluations.map(({ inputsSha256 }) => inputsSha256),
    ...fake.summaries.map(({ adapterSha256 }) => adapterSha256),
  ];
  expect(first.rollouts[0]?.run).not.toBe(second.rollouts[0]?.run);
  expect(hashes(second)).toEqual(hashes(first));
});

describe('groups without signal', () => {
  test('are replaced by fresh scenarios, and the next step deals on behind them', async () => {
    const fakes: FakeOptions = {
      use: ({ step, group }) => (step === 1 && group === 0 ? 'no-variance' : 'trained'),
    };
    await bed.play({ fake: fakes, config: { steps: 2 } }, async ({ handle, fake }) => {
      await handle.result();
      expect(fake.trainings.map(({ groups }) => groups.map(({ group }) => group))).toEqual([
        [1, 2],
        [0, 1],
      ]);
      expect(fake.summaries.map(({ groups, replacedGroups }) => [groups, replacedGroups])).toEqual([
        [2, 1],
        [2, 0],
      ]);
      const dealt = fake.rollouts.map(({ scenario }) => scenario);
      expect(new Set(dealt).size).toBe(5);
    });
  });

  test('are replaced in bounded rounds; then the step trains what there is', async () => {
    const fakes: FakeOptions = { use: ({ group }) => (group === 1 ? 'trained' : 'too-few-attempts') };
    await bed.play({ fake: fakes, config: { steps: 1, replacementRounds: 3 } }, async ({ handle, fake }) => {
      expect((await handle.result()).state).toBe('completed');
      expect(new Set(fake.rollouts.map(({ group }) => group))).toEqual(new Set([0, 1, 2, 3, 4]));
      expect(fake.trainings.map(({ groups }) => groups.length)).toEqual([1]);
    });
  });

  test('leave a step empty: it says so, commits nothing, and the next one trains the older checkpoint', async () => {
    const fakes: FakeOptions = { use: ({ step }) => (step === 2 ? 'no-variance' : 'trained') };
    await bed.play({ fake: fakes }, async ({ handle, fake }) => {
      const state = await handle.result();
      expect(state).toMatchObject({ state: 'completed', step: 3 });
      expect(state.notes).toEqual([
        'step 2 was skipped: every group had identical rewards (no learning signal); the policy is unchanged',
      ]);
      expect(fake.trainings.map(({ step, parent }) => [step, parent.step])).toEqual([
        [1, 0],
        [3, 1],
      ]);
      expect(fake.summaries.map(({ groups }) => groups)).toEqual([2, 0, 2]);
      expect(fake.summaries[1]?.adapterSha256).toBe(fake.summaries[0]?.adapterSha256);
    });
  });

  test('end a run that never learned, with what to change', async () => {
    const fakes: FakeOptions = { use: () => 'no-variance' };
    await bed.play({ fake: fakes, config: { steps: 50, replacementRounds: 0 } }, async ({ handle, fake }) => {
      await expect(handle.result()).rejects.toMatchObject({
        cause: {
          type: 'BadConfig',
          message: expect.stringMatching(
            /learned nothing: 10 steps in a row were skipped.*identical rewards.*try .*supervised steps first/,
          ) as string,
        },
      });
      expect(fake.states.at(-1)).toMatchObject({ state: 'failed', step: 10 });
    });
  });

  test('stop a run that learned before and keep its result', async () => {
    const fakes: FakeOptions = { use: ({ step }) => (step > 1 ? 'no-variance' : 'trained') };
    await bed.play({ fake: fakes, config: { steps: 50, replacementRounds: 0 } }, async ({ handle }) => {
      const state = await handle.result();
      expect(state).toMatchObject({ state: 'stopped', step: 11 });
      // Its result is evaluated, though no evaluation was due.
      expect(state.evals.map(({ step }) => step)).toEqual([0, 11]);
      expect(state.notes.at(-1)).toContain('more steps like these change nothing');
    });
  });
});
