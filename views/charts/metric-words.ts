import type { StepSummary } from '../../core/contract/contract.ts';

/** Names of the trainer's and the judge's metrics in words. Pure. */

/** Those that are not the words of their name. */
const WORDS: Readonly<Record<string, string>> = {
  gradNorm: 'gradient norm',
  kl: 'KL divergence',
  heldOutLoss: 'held-out loss',
  heldOutExamples: 'held-out examples',
  heldOutLossBefore: 'held-out loss before the step',
  rewardStd: 'reward deviation',
  rewardMin: 'least reward',
  rewardMax: 'largest reward',
  rewardMean: 'mean reward',
  logprobK3: 'sampler mismatch (k3)',
  mostLogprobK3: 'largest sampler mismatch (k3)',
  maxAbsLogRatio: 'largest log ratio',
  oneSidedGroups: 'one-sided groups',
  judgeUsd: 'judge cost',
  rulerScore: 'judge score',
  reviewScore: 'reviewers’ score',
};
const OF_PASS = /^pass(\d+)(RatioK3|MaxAbsLogRatio|ClippedShare)$/;
const PASS_WORDS: Readonly<Record<string, string>> = {
  RatioK3: 'ratio (k3)',
  MaxAbsLogRatio: 'largest log ratio',
  ClippedShare: 'clipped share',
};

/** `gradNorm`: `gradient norm`; `pass2RatioK3`: `pass 2, ratio (k3)`; `trainedTokens`: `trained tokens`. */
export function metricWords(name: string): string {
  const [, pass, kind = ''] = OF_PASS.exec(name) ?? [];
  if (pass !== undefined) return `pass ${pass}, ${PASS_WORDS[kind]}`;
  return WORDS[name] ?? name.replaceAll(/[a-z][A-Z]/g, (pair) => `${pair.charAt(0)} ${pair.charAt(1).toLowerCase()}`);
}

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

/** Metrics of the trainer that a table of steps shows. */
export function chooseStepMetrics(steps: readonly StepSummary[]): string[] {
  const named = new Set(steps.flatMap((step) => Object.keys(step.train)));
  const counted = COUNTER_COLUMNS.filter((name) => steps.some((step) => (step.train[name] ?? 0) > 0));
  const ratios = [...named].filter((name) => /^pass\d+RatioK3$/.test(name));
  const supervised = steps.some(({ examples }) => examples !== undefined) ? EXAMPLE_COLUMNS : [];
  return [...[...supervised, ...TRAIN_COLUMNS].filter((name) => named.has(name)), ...ratios, ...counted];
}
