import { expect, test } from 'vitest';

import { TrainInput, type RunConfig, type SupervisedConfig } from '../../../core/contract/contract.ts';
import { hashOf } from '../../../core/text/hashes.ts';
import { countSkipped } from '../../../core/reports/learning-signal.ts';
import { isEvaluationDue } from '../../../core/plan/evaluation.ts';
import { planInitialise, positionAt, type RunPosition } from '../../../core/plan/step.ts';
import { planTraining } from '../../../core/plan/window.ts';
import { planSupervised, splitExamples, positionAfter, summariseSupervised } from '../../../core/plan/supervised.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import { isSupervisedOnly, isSupervisedStep, learningRateOf, supervisedSteps } from '../../../core/rules/supervised.ts';

const DATASET = { key: `blobs/${hashOf('examples')}`, sha256: hashOf('examples'), bytes: 10 };
const SUPERVISED: SupervisedConfig = {
  dataset: DATASET,
  turns: 'all',
  overlong: 'mask',
  examples: 10,
  heldOut: 2,
  examplesPerStep: 3,
};
const NAMES = { run: 'a', agent: 'temper-sft', baseModel: 'pocket' };
const ALONE = defaultRunConfig({ ...NAMES, steps: 6, supervised: SUPERVISED });
const WARM = defaultRunConfig({ ...NAMES, steps: 6, supervised: { ...SUPERVISED, steps: 2 } });

function positionOf(step: number, run = 'a'): RunPosition {
  const prepared = {
    scenarios: DATASET,
    trainScenarios: 8,
    evalScenarios: 2,
    heldOut: true,
    agentCodeSha256: hashOf('code'),
  };
  const checkpoint = {
    run,
    branch: 0,
    step,
    manifestSha256: hashOf(['manifest', step]),
    adapterSha256: hashOf(['adapter', step]),
  };
  return positionAt({ branch: 0, prepared, step, checkpoint, dealt: 0, emptySteps: 0 });
}

const plan = (config: RunConfig, step: number, run?: string) => planSupervised(config, positionOf(step - 1, run));
const examplesOf = (config: RunConfig, steps: number) =>
  Array.from({ length: steps }, (_, index) => plan(config, index + 1).supervised!.examples);

test('the plan of a step is an input of the contract, and names neither run nor time in its hash', () => {
  const input = plan(ALONE, 2);
  expect(TrainInput.parse(input)).toEqual(input);
  expect(input.groups).toEqual([]);
  expect(plan({ ...ALONE, run: 'b' }, 2, 'b').inputsSha256).toBe(input.inputsSha256);
  expect(plan({ ...ALONE, seed: 2 }, 2).inputsSha256).not.toBe(input.inputsSha256);
  const last = { ...ALONE, supervised: { ...SUPERVISED, turns: 'last' as const } };
  expect(plan(last, 2).inputsSha256).not.toBe(input.inputsSha256);
});

test('every example but those held out is dealt once before one is dealt again', () => {
  const { train, heldOut } = splitExamples(ALONE.seed, SUPERVISED);
  expect([...train, ...heldOut].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, index) => index));
  expect(heldOut).toHaveLength(2);
  const dealt = examplesOf(ALONE, 6).flat();
  expect(dealt).toHaveLength(18);
  expect(dealt.slice(0, 8).toSorted((a, b) => a - b)).toEqual(train);
  expect(dealt.slice(8, 16).toSorted((a, b) => a - b)).toEqual(train);
  expect(dealt.slice(0, 8)).not.toEqual(dealt.slice(8, 16));
  expect(examplesOf({ ...ALONE, seed: 2 }, 6)).not.toEqual(examplesOf(ALONE, 6));
});

test('the orders of all examples are made once for a run, however often its steps are planned', () => {
  const dataset = { examples: 5000, heldOut: 10 };
  const split = splitExamples(1, dataset);
  expect(splitExamples(1, { ...dataset })).toBe(split);
  expect(splitExamples(2, dataset)).not.toEqual(split);
  expect(splitExamples(1, { ...dataset, heldOut: 11 }).heldOut).toHaveLength(11);
});

test('held-out examples are scored before the first step, where evaluations are due, and at the last supervised step', () => {
  const scored = (config: RunConfig) =>
    Array.from({ length: supervisedSteps(config) }, (_, index) => plan(config, index + 1).supervised!).map(
      ({ heldOut, scoresParent }) => [heldOut !== undefined, scoresParent === true],
    );
  expect(scored(WARM)).toEqual([
    [true, true],
    [true, false],
  ]);
  const [YES, NO] = [
    [true, false],
    [false, false],
  ];
  expect(scored({ ...ALONE, evalEvery: 3 })).toEqual([[true, true], NO, YES, NO, NO, YES]);
});

test('a run without supervised steps has what it had before there were any', () => {
  const config = defaultRunConfig({ ...NAMES, steps: 6 });
  expect([supervisedSteps(config), isSupervisedOnly(config), isSupervisedStep(config, 1)]).toEqual([0, false, false]);
  expect(Object.keys(config)).not.toContain('supervised');
  expect(Object.keys(planInitialise(config, 0))).not.toContain('supervised');
  expect([0, 1, 6].map((step) => isEvaluationDue(config, step))).toEqual([false, false, true]);
});

test('a warm start ends with an evaluation, and its dataset is checked when the run begins', () => {
  expect([1, 2, 3, 6].map((step) => isEvaluationDue(WARM, step))).toEqual([false, true, false, true]);
  expect([2, 3].map((step) => isSupervisedStep(WARM, step))).toEqual([true, false]);
  expect(planInitialise(WARM, 0)).toMatchObject({ supervised: { dataset: DATASET, turns: 'all', overlong: 'mask' } });
  expect(planInitialise(WARM, 0).inputsSha256).toBe(planInitialise(defaultRunConfig(NAMES), 0).inputsSha256);
});

test('a warm start has a learning rate of its own, after which the schedule of the run begins', () => {
  const options = {
    ...NAMES,
    steps: 6,
    learningRate: 1,
    learningRateSchedule: 'linear',
    finalLearningRateShare: 0,
  } as const;
  const rates = (supervised: SupervisedConfig) => {
    const config = defaultRunConfig({ ...options, supervised });
    return [1, 2, 3, 4, 5, 6].map((step) => learningRateOf(config, step));
  };
  const afterwards = [1, 0.75, 0.5, 0.25];
  expect(rates({ ...SUPERVISED, steps: 2 })).toEqual([1, 1, ...afterwards]);
  expect(rates({ ...SUPERVISED, steps: 2, learningRate: 5, learningRateSchedule: 'linear' })).toEqual([
    5,
    0.5,
    ...afterwards,
  ]);
  expect(rates(SUPERVISED)).toEqual([1, 0.833333333333, 0.666666666667, 0.5, 0.333333333333, 0.166666666667]);
  const [played] = [
    planTraining(defaultRunConfig({ ...options, supervised: { ...SUPERVISED, steps: 2 } }), positionOf(3), []),
  ];
  expect(played).toBeNull();
});

test.each([
  [
    { ...SUPERVISED, steps: 6 },
    {},
    'supervised.steps must be fewer than steps (the run plays its agent after them), got 6; lower supervised.steps to 5',
  ],
  [
    { ...SUPERVISED, heldOut: 10 },
    {},
    'supervised.heldOut must be fewer than the examples, got 10; lower supervised.heldOut to 9',
  ],
  [
    { ...SUPERVISED, learningRate: 1 },
    {},
    'supervised.learningRate 1 has no effect with supervised.steps none; set supervised.steps, or leave supervised.learningRate out',
  ],
  [
    { ...SUPERVISED, steps: 2 },
    { warmupSteps: 4 },
    'warmupSteps must be fewer than the steps after the supervised ones, got 4; lower warmupSteps to 3',
  ],
  [
    { ...SUPERVISED, steps: 2 },
    { maxStaleness: 1 },
    'maxStaleness must be 0 in a run with supervised steps (the first attempts would be sampled before they are trained), got 1; lower maxStaleness to 0',
  ],
])('%o with %o is refused', (supervised, change, message) => {
  expect(() => defaultRunConfig({ ...NAMES, steps: 6, ...change, supervised })).toThrow(message);
});

test('after a step the run stands on its checkpoint, nothing was dealt, and its line tells the loss', () => {
  const training = plan(ALONE, 1);
  const checkpoint = positionOf(1).parent;
  const trained = {
    checkpoint,
    metrics: { loss: 2, heldOutLossBefore: 3, heldOutLoss: 1.5, heldOutExamples: 2 },
    seconds: { load: 1 },
    found: false,
  };
  expect(positionAfter(positionOf(0), trained)).toMatchObject({
    step: 1,
    dealt: 0,
    parent: checkpoint,
    policy: checkpoint,
    emptySteps: 0,
  });
  const summary = summariseSupervised(training, trained, { step: 4 });
  expect(summary).toMatchObject({
    step: 1,
    reward: null,
    groups: 0,
    examples: 3,
    seconds: { step: 4, 'trainer.load': 1 },
  });
  expect(countSkipped([summary])).toBe(0);
  expect(summary.train).toEqual(trained.metrics);
});
