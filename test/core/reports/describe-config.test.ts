import { expect, test } from 'vitest';
import { describeRun } from '../../../core/reports/describe-config.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';

const names = { run: 'demo', agent: 'tic-tac-toe', baseModel: 'pocket' };
const dataset = { key: 'dataset', sha256: 'a'.repeat(64), bytes: 1 };
const supervised = { dataset, examples: 9, heldOut: 0, examplesPerStep: 16, turns: 'all', overlong: 'mask' } as const;

test.each([
  [{ steps: 1 }, 'demo: tic-tac-toe on pocket, 1 step of 8 groups × 8 attempts'],
  [{ steps: 40, supervised }, 'demo: supervised training of pocket, 40 steps of 16 examples'],
  [
    { steps: 40, supervised: { ...supervised, steps: 4 } },
    'demo: tic-tac-toe on pocket, 40 steps of 8 groups × 8 attempts',
  ],
])('a run says what it trains, and how much a step takes: %j', (options, text) => {
  expect(describeRun(defaultRunConfig({ ...names, ...options }))).toBe(text);
});
