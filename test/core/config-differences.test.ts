import { expect, test } from 'vitest';

import { describeConfigDifferences } from '../../core/config-differences.ts';
import { defaultRunConfig } from '../../core/run-defaults.ts';

test('differences between configurations are named by their paths', () => {
  const recorded = defaultRunConfig({ run: 'a', agent: 'b', baseModel: 'pocket' });
  const asked = defaultRunConfig({ run: 'a', agent: 'b', baseModel: 'pocket', steps: 7, train: { lora: { rank: 8 } } });
  expect(describeConfigDifferences(recorded, recorded)).toEqual([]);
  expect(describeConfigDifferences(recorded, asked)).toEqual(['steps: 100 → 7', 'train.lora.rank: 16 → 8']);
});
