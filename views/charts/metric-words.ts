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
