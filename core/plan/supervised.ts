/**
 * The plan of a supervised step: which examples are trained, and which are scored. Pure; a step's number is all that its
 * deal depends on, so that a step after a rollback, or one that is planned again, trains the same examples.
 */
import type { RunConfig, SupervisedConfig, TrainInput, TrainResult, StepSummary } from '../contract/contract.ts';
import { permutation, planDeal } from './deal.ts';
import { isEvaluationDue } from './evaluation.ts';
import { hashTraining, positionAt, type RunPosition } from './step.ts';
import { prefixed } from './run-summary.ts';
import { Remembered } from '../text/remembered.ts';
import { deriveSeed } from '../numbers/seeds.ts';
import { learningRateOf, planRendering } from '../rules/supervised.ts';

type Dataset = Pick<SupervisedConfig, 'examples' | 'heldOut'>;

interface ExampleSplit {
  readonly train: readonly number[];
  readonly heldOut: number[];
}

const splits = new Remembered<ExampleSplit>();

/** Drawn by the run's seed; both parts keep the order of the file. */
export function splitExamples(seed: number, dataset: Dataset): ExampleSplit {
  return splits.get(`${seed} ${dataset.examples} ${dataset.heldOut}`, () => drawSplit(seed, dataset));
}

function drawSplit(seed: number, { examples, heldOut }: Dataset): ExampleSplit {
  const drawn = new Set(permutation(examples, deriveSeed([seed, 'held-out-examples'])).slice(0, heldOut));
  const all = Array.from({ length: examples }, (_, index) => index);
  return { train: all.filter((index) => !drawn.has(index)), heldOut: all.filter((index) => drawn.has(index)) };
}

/** The next step of a run, which must be a supervised one. */
export function planSupervised(config: RunConfig, { branch, step: last, parent }: RunPosition): TrainInput {
  const { supervised, seed, train, baseModel } = config;
  if (supervised === undefined) throw new Error(`step ${last + 1} of ${config.run} is no supervised step`);
  const step = last + 1;
  const split = splitExamples(seed, supervised);
  const { examplesPerStep } = supervised;
  const deals = planDeal(deriveSeed([seed, 'examples']), split.train.length, last * examplesPerStep, examplesPerStep);
  const isFirst = last === 0;
  const isScored = isFirst || isEvaluationDue(config, step);
  const hashed = {
    branch,
    step,
    baseModel,
    groups: [],
    learningRate: learningRateOf(config, step),
    seed,
    train,
    supervised: {
      rendering: planRendering(config, supervised),
      examples: deals.map(({ scenario }) => split.train[scenario] ?? 0),
      ...(isScored ? { heldOut: split.heldOut } : {}),
      ...(isFirst ? { scoresParent: true } : {}),
    },
  };
  return { ...hashed, run: config.run, parent, inputsSha256: hashTraining(hashed, parent) };
}

/** Position of a run after a supervised step, which has no groups. */
export function positionAfter(position: RunPosition, { checkpoint }: TrainResult): RunPosition {
  const { branch, prepared, step, dealt, open, start, league } = position;
  return positionAt({
    ...(start && { start }),
    ...(league && { league }),
    branch,
    prepared,
    step: step + 1,
    dealt,
    open,
    checkpoint,
    emptySteps: 0,
  });
}

/** A line of the run's curve; no agent was played for it. */
export function summariseSupervised(
  { step, learningRate, supervised }: Pick<TrainInput, 'step' | 'learningRate' | 'supervised'>,
  { checkpoint, metrics, seconds: trainer }: TrainResult,
  seconds: Record<string, number>,
): StepSummary {
  return {
    step,
    reward: null,
    metrics: {},
    train: metrics,
    learningRate,
    groups: 0,
    replacedGroups: 0,
    unused: {},
    failedAttempts: 0,
    attempts: 0,
    sampledTokens: 0,
    seconds: { ...seconds, ...prefixed('trainer', trainer) },
    adapterSha256: checkpoint.adapterSha256,
    examples: supervised?.examples.length ?? 0,
  };
}
