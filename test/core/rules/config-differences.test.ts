import { expect, test } from 'vitest';

import { describeConfigDifferences } from '../../../core/rules/config-differences.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';

test('differences between configurations are named by their paths', () => {
  const recorded = defaultRunConfig({ run: 'a', agent: 'b', baseModel: 'pocket' });
  const asked = defaultRunConfig({ run: 'a', agent: 'b', baseModel: 'pocket', steps: 7, train: { lora: { rank: 8 } } });
  expect(describeConfigDifferences(recorded, recorded)).toEqual([]);
  expect(describeConfigDifferences(recorded, asked)).toEqual(['steps: 100 → 7', 'train.lora.rank: 16 → 8']);
});

test('of an adapter and all weights no option is compared', () => {
  const recorded = defaultRunConfig({ run: 'a', agent: 'b', baseModel: 'pocket', learningRate: 1 });
  const full = defaultRunConfig({ run: 'a', agent: 'b', baseModel: 'pocket', learningRate: 1, train: { lora: null } });
  expect(describeConfigDifferences(recorded, full)).toEqual(['train.lora: "a LoRA adapter" → "all weights"']);
  expect(describeConfigDifferences(full, full)).toEqual([]);
});

test('a field that was not there when the configuration was recorded is none', () => {
  const asked = defaultRunConfig({ run: 'a', agent: 'b', baseModel: 'pocket' });
  const { parent: _, ...recorded } = asked;
  expect(describeConfigDifferences(recorded as typeof asked, asked)).toEqual([]);
});

test('a parent is named as a person names a checkpoint', () => {
  const recorded = defaultRunConfig({ run: 'a', agent: 'b', baseModel: 'pocket' });
  const parent = { run: 'demo', branch: 1, step: 4, manifestSha256: '4'.repeat(64), adapterSha256: '5'.repeat(64) };
  expect(describeConfigDifferences(recorded, { ...recorded, parent })).toEqual([
    `parent: null → "demo~1@4, manifest ${'4'.repeat(64)}"`,
  ]);
});
