import { expect, test } from 'vitest';
import type { AttemptCost } from '../../cli/players/attempt-runner.ts';
import { summariseOutcomes } from '../../cli/eval/summarise.ts';
import { attemptOf, FAILED } from '../store/records/made-attempt.ts';

const cost = (costUsd: number | null): AttemptCost => ({
  calls: 1,
  promptTokens: 10,
  completionTokens: 2,
  costUsd,
  latencySeconds: 1,
});
const summarise = (...all: { rewards: (number | null)[]; usd: (number | null)[] }[]) =>
  summariseOutcomes(
    'agent',
    { played: 0, of: 0 },
    [],
    all.map(({ rewards, usd }, model) => ({
      model: `model ${model}`,
      played: {
        attempts: rewards.map((reward, index) => attemptOf(index, [], reward === null ? FAILED : { reward })),
        costs: usd.map((each) => cost(each)),
      },
      error: null,
    })),
  ).models;

test('a cost is told where each attempt has one: a part of them would look cheap', () => {
  const [whole, part] = summarise({ rewards: [1, 1], usd: [0.5, 0.25] }, { rewards: [1, 1], usd: [0.5, null] });
  expect(whole).toMatchObject({ totalCostUsd: 0.75, costUsd: { mean: 0.375 }, promptTokens: { mean: 10 } });
  expect(part).toMatchObject({ totalCostUsd: null, costUsd: null, promptTokens: { mean: 10 } });
});

test('a model is compared with the first one on the scenarios that both have played', () => {
  const [first, second] = summarise({ rewards: [0, 1, null], usd: [] }, { rewards: [1, null, 5], usd: [] });
  expect(first).toMatchObject({ failed: 1, reward: { mean: 0.5 }, rewardDifference: null });
  expect(second).toMatchObject({ failed: 1, reward: { mean: 3 }, rewardDifference: { mean: 1 } });
});
