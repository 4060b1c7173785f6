import { expect, test } from 'vitest';

import { RunConfig } from '../../../core/contract/contract.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import {
  applyChanges,
  applySettings,
  findSettingsProblem,
  describeChange,
  planChanges,
  settingOf,
  SETTINGS,
  type Settings,
} from '../../../core/rules/settings.ts';

const NAMES = { run: 'a', agent: 'agent', baseModel: 'pocket' };
const CONFIG = defaultRunConfig({ ...NAMES, judge: 'openai/gpt-5-mini', steps: 20, warmupSteps: 2 });
const PLACE = { branch: 0, step: 6, reason: null };

test('only what differs is a change, and a change leads from one configuration to the other', () => {
  const settings: Settings = { learningRate: 1e-5, temperature: 0.7, steps: 20 };
  const changes = planChanges(CONFIG, settings, PLACE);
  expect(changes).toEqual([
    { setting: 'learningRate', from: 5e-5, to: 1e-5, ...PLACE },
    { setting: 'temperature', from: 1, to: 0.7, ...PLACE },
  ]);
  const changed = applyChanges(CONFIG, changes);
  expect(changed).toEqual(applySettings(CONFIG, settings));
  expect(changed).toEqual({ ...CONFIG, learningRate: 1e-5, rollout: { ...CONFIG.rollout, temperature: 0.7 } });
  expect(planChanges(changed, settings, PLACE)).toEqual([]);
});

/** Values at and around each bound, of each kind. */
const VALUES = [-1, 0, 1e-9, 0.5, 1, 1.5, 2, 2.000001, 3, 100, 2 ** 53, Number.NaN, Infinity];

test.each(SETTINGS)('%s may be what the schema of a run lets it be', (setting) => {
  for (const value of VALUES) {
    const changed = applySettings({ ...CONFIG, warmupSteps: 0, minimumGroupSize: 2 }, { [setting]: value });
    const isFine = RunConfig.safeParse(changed).success;
    expect([value, findSettingsProblem({ ...CONFIG, warmupSteps: 0 }, 0, { [setting]: value }) === null]).toEqual([
      value,
      isFine,
    ]);
    expect(settingOf(changed, setting)).toBe(value);
  }
});

test.each<[string, unknown, string]>([
  [
    'nothing',
    {},
    'nothing to set; name at least one of learningRate, temperature, steps, groupSize, evalEvery, gpuUsdPerHour, maxCostUsd, maxHours',
  ],
  [
    'what a run keeps',
    { seed: 2 },
    'seed cannot be changed after a run has started, only learningRate, temperature, steps, groupSize, evalEvery, gpuUsdPerHour, maxCostUsd, maxHours can; start another run',
  ],
  ['text', { steps: '9' }, 'steps must be a whole number of at least 1, got "9"; pass another value'],
  [
    'steps that are done',
    { steps: 5 },
    'steps must be more than the 5 that are done, got 5; pass more, or end the run with temper stop',
  ],
  [
    'a group below the smallest',
    { groupSize: 3 },
    'minimumGroupSize must be at most groupSize, got 4; lower minimumGroupSize to 3, or raise groupSize',
  ],
])('%s is refused, with what to do', (_, settings, complaint) => {
  expect(findSettingsProblem({ ...CONFIG, minimumGroupSize: 4 }, 5, settings as Settings)).toBe(complaint);
});

test.each(['temperature', 'groupSize'] as const)('a run that plays no agent takes no %s', (setting) => {
  const supervised = {
    dataset: { sha256: 'a', key: 'blobs/a', bytes: 1 },
    examples: 9,
    heldOut: 1,
    examplesPerStep: 4,
    turns: 'all',
    overlong: 'mask',
  } as const;
  const examples = { ...CONFIG, judge: null, supervised };
  expect(findSettingsProblem(examples, 5, { [setting]: 2 })).toBe(
    `${setting} has no effect where all steps are supervised (no attempt is played); leave it out`,
  );
  expect(findSettingsProblem(examples, 5, { learningRate: 1, steps: 30, evalEvery: 2 })).toBeNull();
  const warmStart = { ...examples, supervised: { ...supervised, steps: 3 } };
  expect(findSettingsProblem(warmStart, 5, { [setting]: 2 })).toBeNull();
});

test('a change reads well', () => {
  const change = { setting: 'learningRate', from: 5e-5, to: 1e-5, branch: 0, step: 8, reason: null } as const;
  expect(describeChange(change)).toBe('learningRate 0.00005 → 0.00001 from step 8 on');
  expect(describeChange({ ...change, reason: 'it diverged' })).toContain(' on, because: it diverged');
});
