import { expect, test } from 'vitest';

import { RunConfig } from '../../../core/contract/contract.ts';
import { NAME_PATTERN } from '../../../core/contract/wire-constants.ts';
import { firingRunName, MAX_SCHEDULE_NAME, planFiring } from '../../../core/plan/firing.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';

const TEMPLATE = defaultRunConfig({ run: 'nightly', agent: 'agent', baseModel: 'pocket', seed: 5 });

test('a firing is the template under its own name, with a seed of its own and its parent', () => {
  const parent = {
    run: 'nightly-1',
    branch: 0,
    step: 9,
    manifestSha256: '4'.repeat(64),
    adapterSha256: '5'.repeat(64),
  };
  const config = planFiring(TEMPLATE, 'nightly-2', 2, parent);
  expect(RunConfig.parse(config)).toEqual(config);
  expect(config).toEqual({ ...TEMPLATE, run: 'nightly-2', parent, seed: config.seed });
  const seeds = [1, 2, 3].map((number) => planFiring(TEMPLATE, 'x', number, null).seed);
  expect(new Set([...seeds, TEMPLATE.seed]).size).toBe(4);
  expect(planFiring(TEMPLATE, 'y', 2, null).seed).toBe(config.seed);
  expect(planFiring({ ...TEMPLATE, seed: 6 }, 'x', 2, null).seed).not.toBe(config.seed);
});

test('the longest name of a schedule leaves room for the number in the name of a run', () => {
  expect(firingRunName('nightly', 12)).toBe('nightly-12');
  expect(firingRunName('a'.repeat(MAX_SCHEDULE_NAME), 999_999_999_999)).toMatch(NAME_PATTERN);
});
