/** Flags of updates, losses and additional loss terms, in the order of help. */
import type { RunFlag } from './run-flag.ts';

export const LOSS_FLAGS = {
  passes: {
    kind: 'integer',
    placeholder: 'N',
    path: 'train.passes',
    description: 'how often a step trains its groups',
  },
  'mini-batches': {
    kind: 'integer',
    placeholder: 'N',
    path: 'train.miniBatches',
    description: 'optimizer updates per pass, each on a part of the groups',
  },
  loss: {
    kind: 'text',
    placeholder: 'NAME',
    path: 'train.loss.name',
    description: 'loss of the policy',
  },
  'epsilon-low': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.loss.epsilonLow',
    description: 'lower end of the range that the ratio is clipped to, as a distance from 1',
  },
  'epsilon-high': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.loss.epsilonHigh',
    description: 'upper end of that range, as a distance from 1',
  },
  'dual-clip': {
    kind: 'number',
    placeholder: 'X',
    none: true,
    path: 'train.loss.dualClip',
    description: "ppo's bound for negative advantages, or none",
  },
  'max-shift': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.loss.maxShift',
    description: "how far dppo lets a token's probability move",
  },
  'log-ratio-penalty': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.loss.logRatioPenalty',
    description: "factor of dppo's squared log ratio",
  },
  'tau-positive': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.loss.tauPositive',
    description: 'how fast the gradient of sapo fades, for positive advantages',
  },
  'tau-negative': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.loss.tauNegative',
    description: 'the same for negative advantages',
  },
  reduction: {
    kind: 'text',
    placeholder: 'NAME',
    path: 'train.reduction',
    description: 'what counts the same in the loss: token, attempt or constant',
  },
  'reduction-tokens': {
    kind: 'integer',
    placeholder: 'N',
    path: 'train.reductionTokens',
    description: 'tokens that an attempt counts as, with --reduction constant',
  },
  correction: {
    kind: 'text',
    placeholder: 'NAME',
    path: 'train.correction',
    description:
      'for a sampler that differs from the trainer: token-truncate, token-mask, sequence-truncate, sequence-mask, geometric, off-policy-mask or none',
  },
  'correction-cap': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.correctionCap',
    description: 'largest ratio of trainer to sampler that --correction accepts',
  },
  'kl-coefficient': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.klCoefficient',
    description: 'what a divergence from the base model, or from --kl-reference, costs',
  },
  'kl-reference': {
    kind: 'text',
    placeholder: 'CHECKPOINT',
    path: 'train.klReference',
    description: 'checkpoint that --kl-coefficient keeps the policy near, in place of the base model',
  },
  'kl-as': {
    kind: 'text',
    placeholder: 'NAME',
    path: 'train.klAs',
    description: 'where --kl-coefficient is charged: loss or reward',
  },
  'kl-estimator': {
    kind: 'text',
    placeholder: 'NAME',
    path: 'train.klEstimator',
    description: 'what stands for the divergence in the loss: k3-ratio, or k3 as in GRPO',
  },
  'entropy-coefficient': {
    kind: 'number',
    placeholder: 'X',
    path: 'train.entropyCoefficient',
    description: 'what a nat of entropy is worth in the loss',
  },
} satisfies Readonly<Record<string, RunFlag>>;
