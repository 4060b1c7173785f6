/** Metrics of the trainer that a table of steps shows. */
import type { StepSummary } from '../../core/contract.ts';

/** Columns of supervised steps. */
const EXAMPLE_COLUMNS: readonly string[] = ['examples', 'loss', 'heldOutLoss'];
const TRAIN_COLUMNS: readonly string[] = [
  'rewardStd',
  'advantageMass',
  'entropy',
  'gradNorm',
  'logprobK3',
  'maxAbsLogRatio',
  'trainedTokens',
  'sharedTokens',
];
/** Columns shown if any step has them. */
const COUNTER_COLUMNS: readonly string[] = [
  'clippedShare',
  'correctedShare',
  'staleness',
  'truncated',
  'forks',
  'histories',
  'rewardedTurns',
  'packedAsRows',
];

export function chooseStepMetrics(steps: readonly StepSummary[]): string[] {
  const named = new Set(steps.flatMap((step) => Object.keys(step.train)));
  const counted = COUNTER_COLUMNS.filter((name) => steps.some((step) => (step.train[name] ?? 0) > 0));
  const ratios = [...named].filter((name) => /^pass\d+RatioK3$/.test(name));
  const supervised = steps.some(({ examples }) => examples !== undefined) ? EXAMPLE_COLUMNS : [];
  return [...[...supervised, ...TRAIN_COLUMNS].filter((name) => named.has(name)), ...ratios, ...counted];
}
