import { expect, test } from 'vitest';

import { planLearningRate } from '../../../core/numbers/learning-rate.ts';

const CONFIG = {
  learningRate: 0.005,
  learningRateSchedule: 'linear',
  finalLearningRateShare: 0.1,
  learningRateRestarts: 0,
  warmupSteps: 0,
  steps: 5,
} as const;

function rates(change: Partial<Parameters<typeof planLearningRate>[0]>): number[] {
  const config = { ...CONFIG, ...change };
  return Array.from({ length: config.steps }, (_, index) => planLearningRate(config, index + 1));
}

test('constant stays', () => {
  expect(rates({ learningRateSchedule: 'constant', finalLearningRateShare: 1 })).toEqual(Array(5).fill(0.005));
});

test('linear begins at the full rate and ends at its share, in equal parts', () => {
  expect(rates({})).toEqual([0.005, 0.003875, 0.00275, 0.001625, 0.0005]);
});

test('cosine begins at the full rate, is half-way in the middle and ends at its share', () => {
  expect(rates({ learningRateSchedule: 'cosine', finalLearningRateShare: 0.2 })).toEqual([
    0.005, 0.00441421356237, 0.003, 0.00158578643763, 0.001,
  ]);
});

test('a share of 0 is reached one step after the last, so that each step trains', () => {
  const toZero = { finalLearningRateShare: 0 };
  expect(rates(toZero)).toEqual([0.005, 0.004, 0.003, 0.002, 0.001]);
  expect(rates({ ...toZero, learningRateSchedule: 'cosine', steps: 4 })).toEqual([
    0.005, 0.00426776695297, 0.0025, 0.000732233047034,
  ]);
  expect(rates({ ...toZero, warmupSteps: 2 })).toEqual([
    0.00166666666667, 0.00333333333333, 0.005, 0.00333333333333, 0.00166666666667,
  ]);
  const restarted = { ...toZero, learningRateSchedule: 'cosine', learningRateRestarts: 1, steps: 3 } as const;
  expect(rates(restarted)).toEqual([0.005, 0.00125, 0.00375]);
  for (const change of [{ steps: 1 }, { steps: 2, warmupSteps: 1 }])
    expect(rates({ ...toZero, ...change }).at(-1)).toBe(0.005);
});

test('cosine with restarts begins anew at the full rate, and ends at its share', () => {
  const change = { learningRateSchedule: 'cosine', finalLearningRateShare: 0.2, learningRateRestarts: 1 } as const;
  expect(rates({ ...change, steps: 9 })).toEqual([
    0.005, 0.00441421356237, 0.003, 0.00158578643763, 0.005, 0.00441421356237, 0.003, 0.00158578643763, 0.001,
  ]);
  const twice = { ...change, learningRateRestarts: 2, warmupSteps: 1, steps: 8 };
  expect(rates(twice).map((rate) => rate === 0.005)).toEqual([false, true, false, true, false, true, false, false]);
});

test('warm-up rises to the full rate of the step after it', () => {
  expect(rates({ warmupSteps: 3, steps: 6 })).toEqual([0.00125, 0.0025, 0.00375, 0.005, 0.00275, 0.0005]);
});

test('a run of one step trains at the full rate', () => {
  expect(rates({ steps: 1 })).toEqual([0.005]);
});

test('a learning rate of 0 stays 0', () => {
  expect(rates({ learningRate: 0 })).toEqual([0, 0, 0, 0, 0]);
});
