import { expect, test } from 'vitest';

import {
  DEFAULT_LOSS,
  LOSS_DEFAULTS,
  LOSS_NAMES,
  LossConfig,
  RunConfig,
  usersOfOption,
} from '../../../core/contract/contract.ts';
import { defaultRunConfig, layoutOf, type RunOptions } from '../../../core/rules/run-defaults.ts';
import { fillDefaults, omitDefaults, SCHEMA_DEFAULTS } from '../../../core/contract/schema-defaults.ts';

const NAMED = { run: 'demo', agent: 'tic-tac-toe', baseModel: 'pocket' };

test('the defaults are a run', () => {
  const config = defaultRunConfig(NAMED);
  expect(RunConfig.parse(config)).toEqual(config);
});

test('what is said is kept, at any depth, and the rest is filled in', () => {
  const config = defaultRunConfig({
    ...NAMED,
    steps: 7,
    rollout: { maxTokens: 3 },
    train: { lora: { rank: 4 }, loss: { name: 'cispo', epsilonHigh: 4 } },
  });
  expect(config).toMatchObject({ steps: 7, rollout: { maxTokens: 3, temperature: 1 } });
  expect(config.train.lora).toMatchObject({ rank: 4, alpha: 32, targetModules: null });
  expect(config.train.loss).toEqual({ name: 'cispo', epsilonLow: 1, epsilonHigh: 4 });
});

test('with maxStaleness losses act in a single update', () => {
  const config = defaultRunConfig({ ...NAMED, maxStaleness: 1, train: { loss: { name: 'ppo' } } });
  expect(config).toMatchObject({ maxStaleness: 1, train: { loss: { name: 'ppo' } } });
  expect(defaultRunConfig({ ...NAMED, maxStaleness: 0 })).toEqual(defaultRunConfig(NAMED));
});

test.each([{ passes: 2 }, { miniBatches: 2 }])('with %j, losses and their ranges act', (updates) => {
  const { train } = defaultRunConfig({ ...NAMED, train: { ...updates, loss: { name: 'ppo', epsilonLow: 0.1 } } });
  expect(train).toMatchObject({ ...updates, loss: { name: 'ppo', epsilonLow: 0.1, epsilonHigh: 0.28 } });
});

test('a correction has its own cap', () => {
  expect(defaultRunConfig({ ...NAMED, train: { correction: 'token-mask' } }).train.correctionCap).toBe(2);
  expect(defaultRunConfig({ ...NAMED, train: { correction: 'geometric' } }).train.correctionCap).toBe(1.01);
});

test('a divergence in the loss is estimated with the gradient of the policy, unless k3 alone is asked for', () => {
  const estimator = (train: RunOptions['train']) => defaultRunConfig({ ...NAMED, train: train! }).train.klEstimator;
  expect(estimator({ klCoefficient: 0.1 })).toBe('k3-ratio');
  expect(estimator({ klCoefficient: 0.1, klAs: 'reward' })).toBe('k3-ratio');
  expect(estimator({ klCoefficient: 0.1, klEstimator: 'k3' })).toBe('k3');
});

test('a buffer of tokens has its own penalty', () => {
  const { train } = defaultRunConfig({ ...NAMED, train: { overlongBuffer: 64 } });
  expect(train).toMatchObject({ overlongBuffer: 64, overlongPenalty: 1 });
});

test('without an adapter the learning rate is a tenth, unless it is given', () => {
  const full = defaultRunConfig({ ...NAMED, train: { lora: null } });
  expect([full.train.lora, full.learningRate, defaultRunConfig(NAMED).learningRate]).toEqual([null, 5e-6, 5e-5]);
  expect(defaultRunConfig({ ...NAMED, learningRate: 1e-3, train: { lora: null } }).learningRate).toBe(1e-3);
});

test('the schema fills the same defaults in as a plan does, and what is recorded omits them', () => {
  const config = defaultRunConfig({ ...NAMED, train: { passes: 2, lora: { dora: true } } });
  const recorded = omitDefaults(config, SCHEMA_DEFAULTS);
  expect(RunConfig.parse(recorded)).toEqual(config);
  expect(fillDefaults(recorded, SCHEMA_DEFAULTS)).toEqual(config);
  expect(omitDefaults(recorded, SCHEMA_DEFAULTS)).toEqual(recorded);
  expect(recorded.train).toEqual({
    advantageScale: 'none',
    leaveOneOut: false,
    truncated: 'mask',
    maxLogprobMismatch: 1e-3,
    microBatchTokens: 16_384,
    passes: 2,
    lora: { rank: 16, alpha: 32, targetModules: null, dora: true },
    loss: { name: 'cispo', epsilonLow: 1, epsilonHigh: 4 },
    optimizer: { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 },
  });
  expect(Object.keys(recorded)).not.toContain('maxStaleness');
});

test('null is recorded where it stands for a group of options', () => {
  const config = defaultRunConfig({ ...NAMED, train: { lora: null } });
  expect(omitDefaults(config, SCHEMA_DEFAULTS).train).toHaveProperty('lora', null);
  expect(fillDefaults(config, SCHEMA_DEFAULTS)).toEqual(config);
});

test.each(LOSS_NAMES)('the defaults of %s are the loss of that name', (name) => {
  expect(LossConfig.parse(LOSS_DEFAULTS[name])).toEqual(LOSS_DEFAULTS[name]);
  expect(LOSS_DEFAULTS[name].name).toBe(name);
});

test('a run that exists keeps how its micro-batches are laid, whatever is the default', () => {
  const old = defaultRunConfig({ ...NAMED, train: { packing: 'rows', microBatchTokens: 512 } });
  expect(defaultRunConfig({ ...NAMED, train: layoutOf(old) })).toEqual(old);
  expect(layoutOf(null)).toEqual({});
});

test('a schedule that falls keeps a tenth', () => {
  expect(defaultRunConfig({ ...NAMED, learningRateSchedule: 'linear' }).finalLearningRateShare).toBe(0.1);
});

test.each([
  [
    { groupSize: 4, minimumGroupSize: 5 },
    'minimumGroupSize must be at most groupSize, got 5; lower minimumGroupSize to 4, or raise groupSize',
  ],
  [{ steps: 3, warmupSteps: 3 }, 'warmupSteps must be fewer than steps, got 3; lower warmupSteps to 2, or raise steps'],
  [
    { finalLearningRateShare: 0.5 },
    'finalLearningRateShare 0.5 has no effect with learningRateSchedule constant; set learningRateSchedule to linear or cosine, or leave finalLearningRateShare out',
  ],
  [
    { train: { loss: { name: 'grpo' as 'cispo' } } },
    'loss.name must be one of cispo, ppo, gspo, dppo, sapo, importance_sampling, got "grpo"; leave loss.name out for cispo',
  ],
  [
    { groupsPerStep: 2001 },
    'groupsPerStep must be at most 2000, got 2001; lower groupsPerStep to 2000, or raise steps',
  ],
  [{ train: { loss: { dualClip: 3 } } }, 'loss.dualClip 3 has no effect with the loss cispo (only ppo uses it)'],
  [{ train: { loss: { name: 'ppo' } } }, 'loss.name ppo has no effect: with a single update'],
  [{ train: { loss: { name: 'importance_sampling' } } }, 'leave loss.name out'],
  [
    { train: { loss: { name: 'importance_sampling', epsilonLow: 0.2 } } },
    'loss.epsilonLow 0.2 has no effect with the loss importance_sampling (only cispo, ppo, gspo use it); leave loss.epsilonLow out',
  ],
  [{ train: { loss: { epsilonHigh: 0.3 } } }, 'loss.epsilonHigh 0.3 has no effect'],
  [
    { train: { loss: { name: 'ppo', epsilonLow: 0.1, dualClip: 4 } } },
    'loss.name ppo and loss.epsilonLow 0.1 and loss.dualClip 4 have no effect',
  ],
  [{ train: { miniBatches: 9 } }, 'miniBatches must be at most groupsPerStep (a mini-batch is made of whole groups)'],
  [
    { train: { passes: 2, loss: { name: 'gspo', epsilonLow: 0.2 } } },
    'loss.epsilonLow and loss.epsilonHigh of gspo must be at most 0.04 (the mean ratio of a sequence moves by thousandths',
  ],
  [
    { train: { passes: 2, loss: { name: 'sapo', epsilonLow: 0.2 } as object } },
    'loss.epsilonLow 0.2 has no effect with the loss sapo (only cispo, ppo, gspo use it); leave loss.epsilonLow out',
  ],
  [{ train: { loss: { name: 'dppo', maxShift: 0.1 } } }, 'loss.name dppo and loss.maxShift 0.1 have no effect'],
  [{ train: { reduction: 'constant' } }, 'reduction constant must be given reductionTokens'],
  [
    { train: { correctionCap: 3 } },
    'correctionCap 3 has no effect with correction none; set correction, or leave correctionCap out',
  ],
  [
    { train: { klCoefficient: 0, klAs: 'reward' } },
    'klAs reward has no effect with klCoefficient 0; set klCoefficient, or leave klAs out',
  ],
  [
    { train: { klEstimator: 'k3' } },
    'klEstimator k3 has no effect with klCoefficient 0; set klCoefficient, or leave klEstimator out',
  ],
  [
    { train: { klCoefficient: 0.1, klAs: 'reward', klEstimator: 'k3' } },
    'klEstimator k3 has no effect with klAs reward; set klAs to loss, or leave klEstimator out',
  ],
  [
    { train: { overlongBuffer: 0, overlongPenalty: 2 } },
    'overlongPenalty 2 has no effect with overlongBuffer 0; set overlongBuffer, or leave overlongPenalty out',
  ],
  [{ train: { reductionTokens: 9 } }, 'reductionTokens 9 has no effect with reduction token'],
  [{ learningRateRestarts: 2 }, 'learningRateRestarts 2 has no effect with learningRateSchedule constant'],
  [
    { learningRateRestarts: 4, learningRateSchedule: 'cosine', steps: 6, warmupSteps: 1 },
    'learningRateRestarts must be fewer than the steps after the first one at the full rate, got 4; lower learningRateRestarts to 3',
  ],
] as [Partial<RunOptions>, string][])('%j is refused', (options, message) => {
  expect(() => defaultRunConfig({ ...NAMED, ...options })).toThrow(message);
});

/** Each loss alone, and with each of its own parameters at another value than its default. */
const LOSSES = LOSS_NAMES.flatMap((name) => {
  const { name: _, ...all } = LOSS_DEFAULTS[name];
  const own = Object.entries(all).filter(([option]) => usersOfOption(option).has(name));
  const changed = own.map(([option, value]): Record<string, number> => ({ [option]: Number(value) * 0.9 }));
  return [...(name === DEFAULT_LOSS ? [] : [{}]), ...changed].map((options) => [name, options] as const);
});

test.each(LOSSES)('%s with %j acts where ratios move, and is refused in a single update', (name, options) => {
  const trained = (train: object, maxStaleness = 0) =>
    defaultRunConfig({ ...NAMED, maxStaleness, train: { ...train, loss: { name, ...options } } }).train.loss;
  const asked = { ...LOSS_DEFAULTS[name], ...options };
  expect([trained({ passes: 2 }), trained({ miniBatches: 2 }), trained({}, 1)]).toEqual([asked, asked, asked]);
  expect(LossConfig.parse(asked)).toEqual(asked);
  const given = [...(name === DEFAULT_LOSS ? [] : [`loss.name ${name}`]), ...wordsOf(options)];
  expect(() => trained({ passes: 1 })).toThrow(
    `${given.join(' and ')} ${given.length === 1 ? 'has' : 'have'} no effect: with a single update`,
  );
});

function wordsOf(options: Readonly<Record<string, number>>): string[] {
  return Object.entries(options).map(([option, value]) => `loss.${option} ${value}`);
}
