import { expect, test } from 'vitest';

import type { RunCosts, StepCosts } from '../../../core/contract/contract.ts';
import {
  addUsages,
  costMetrics,
  describeCosts,
  findExceeded,
  NO_COSTS,
  runBudgets,
} from '../../../core/rules/costs.ts';
import { findPrice, LIST_PRICES_OF, usdOfTokens } from '../../../core/numbers/prices.ts';
import { summary } from '../../cli/fixture-store.ts';

const costs = (usd: StepCosts['usd']): StepCosts => ({ seconds: 1800, usd, cumulativeUsd: 10 });
const spent = (change: Partial<RunCosts>): RunCosts => ({ ...NO_COSTS, ...change });
const exceeded = (limits: { maxCostUsd?: number; maxHours?: number }, total: RunCosts, usd: StepCosts['usd'] = {}) =>
  findExceeded(runBudgets({ maxCostUsd: null, maxHours: null, ...limits }, total, costs(usd)));

test('a budget is exceeded if the next step, costing as much as the last one, would exceed it', () => {
  const total = spent({ usd: { gpu: 3, judge: 1 }, seconds: 7200 });
  expect(exceeded({ maxCostUsd: 6, maxHours: 3 }, total, { gpu: 1, judge: 1 })).toBeNull();
  expect(exceeded({ maxCostUsd: 5.5 }, total, { gpu: 1, judge: 1 })).toEqual({
    flag: 'max-cost-usd',
    complaint: 'the run has cost $4.00 of maxCostUsd $5.50, the last step $2.00',
  });
  expect(exceeded({ maxHours: 2.4 }, total)).toEqual({
    flag: 'max-hours',
    complaint: 'the run has worked 2 h of maxHours 2.4 h, the last step 0.5 h',
  });
  expect(exceeded({ maxHours: 0 }, NO_COSTS)).not.toBeNull();
});

test('costs have the names of ART, and nothing without a price is 0', () => {
  const line = summary(1, 2);
  expect(costMetrics({ ...line, costs: costs({ gpu: 1, judge: 0.5, hosted: 0.25, eval: 0.125 }) })).toEqual({
    'costs/gpu': 1,
    'costs/train': 0.75,
    'costs/eval': 0.125,
    'costs/all': 1.875,
    'costs/cum/all': 10,
  });
  expect(costMetrics({ ...line, costs: costs({ judge: 0.5 }) })).toEqual({
    'costs/train': 0.5,
    'costs/all': 0.5,
    'costs/cum/all': 10,
  });
  expect([costMetrics(line), costMetrics({ ...line, costs: costs({}) })]).toEqual([{}, {}]);
});

test('costs for people name what has no price', () => {
  expect(describeCosts(NO_COSTS)).toBeNull();
  expect(describeCosts(spent({ usd: { gpu: 10.2, judge: 2.2 }, maxCostUsd: 25, maxHours: 10, seconds: 12_240 }))).toBe(
    '$12.40 of $25.00 (hardware $10.20, judge $2.20), 3.4 h of 10 h',
  );
  expect(describeCosts(spent({ unpriced: ['groq/large'] }))).toBe('without groq/large (unknown price)');
});

test('the tokens of hosted models are added, and so are the names of those without a price', () => {
  const hosted = { calls: 1, promptTokens: 10, completionTokens: 2, usd: 0.5 };
  const usage = { promptTokens: 7, cachedPromptTokens: 3, sampledTokens: 4 };
  const unpriced = ['groq/large'];
  expect(addUsages([usage, { ...usage, hosted }, { ...usage, hosted: { ...hosted, usd: 0, unpriced } }])).toEqual({
    promptTokens: 21,
    cachedPromptTokens: 9,
    sampledTokens: 12,
    hosted: { calls: 2, promptTokens: 20, completionTokens: 4, usd: 0.5, unpriced },
  });
});

test('a price of the project replaces the list price; a snapshot has that of its model; an unknown model has none', () => {
  const own = { 'openai/gpt-5-mini': { usdPerMillionInput: 1, usdPerMillionOutput: 3 } };
  expect(findPrice(own, 'openai/gpt-5-mini')).toEqual({ ...own['openai/gpt-5-mini'], isListed: false });
  const listed = { usdPerMillionInput: 0.25, usdPerMillionOutput: 2, isListed: true };
  expect(findPrice({}, 'openai/gpt-5-mini-2025-08-07')).toEqual(listed);
  expect(findPrice({}, 'anthropic/claude-haiku-4-5-20251001')).toMatchObject({ usdPerMillionOutput: 5 });
  expect([findPrice({}, 'groq/large'), findPrice({}, 'toString')]).toEqual([null, null]);
  expect(usdOfTokens(listed, 2_000_000, 500_000)).toBe(1.5);
  expect(LIST_PRICES_OF).toMatch(/^\d{4}-\d{2}-\d{2}$/);
});
