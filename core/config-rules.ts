/** The rules that tie fields of a run's configuration together. Workflows hold changed settings to them: no zod here. */
import type { RunConfig, TrainConfig } from './contract.ts';
import { isAwaited, REVIEW } from './external-rewards.ts';
import { REWARD_GROUP } from './named-rewards.ts';
import { findProductionProblem } from './production.ts';
import { SCHEMA_DEFAULTS } from './schema-defaults.ts';
import { findRoleSettingsProblem } from './role-rules.ts';
import { findSupervisedProblem } from './supervised.ts';

/** Describes a contradiction; null if there is none. `loss-options.ts` checks losses, which no setting changes. */
export function findConfigProblem(config: RunConfig): string | null {
  const { groupSize, minimumGroupSize, finalLearningRateShare, learningRateSchedule } = config;
  if (minimumGroupSize > groupSize)
    return `minimumGroupSize must be at most groupSize, got ${minimumGroupSize} of ${groupSize}; lower one or raise the other`;
  const ofSteps = findStepsProblem(config);
  if (ofSteps !== null) return ofSteps;
  if (learningRateSchedule === 'constant' && finalLearningRateShare !== 1)
    return `finalLearningRateShare ${finalLearningRateShare} has no effect with a constant learning rate; choose the schedule linear or cosine`;
  return findStartProblem(config) ?? findRestartsProblem(config) ?? findOptionsProblem(config);
}

/** With a judge and one round of replacements, a group takes up to 24 events of the history, of which Temporal takes 51,200. */
const MOST_GROUPS = 2000;

function findGroupsProblem({ groupsPerStep }: RunConfig): string | null {
  if (groupsPerStep <= MOST_GROUPS) return null;
  return `groupsPerStep must be at most ${MOST_GROUPS}, got ${groupsPerStep}; lower it, and raise steps`;
}

function findOptionsProblem(config: RunConfig): string | null {
  return (
    findGroupsProblem(config) ??
    findBudgetProblem(config) ??
    findExternalProblem(config) ??
    findUpdatesProblem(config) ??
    findReductionProblem(config.train) ??
    findBaselineProblem(config.train) ??
    findCorrectionProblem(config.train) ??
    findKlProblem(config.train) ??
    findOverlongProblem(config.train) ??
    findSourceProblem(config)
  );
}

/** Rules of what steps train, and of who plays it. */
function findSourceProblem(config: RunConfig): string | null {
  return (
    findSupervisedProblem(config) ??
    findAheadProblem(config) ??
    findRoleSettingsProblem(config) ??
    findProductionProblem(config)
  );
}

function findBudgetProblem({ maxCostUsd, gpuUsdPerHour, judge, roles = {} }: RunConfig): string | null {
  const isPaid = judge !== null && judge !== REWARD_GROUP && !isAwaited(judge);
  const hasHosted = Object.values(roles).some(({ kind }) => kind === 'hosted');
  if (maxCostUsd === null || gpuUsdPerHour !== null || isPaid || hasHosted) return null;
  return `maxCostUsd ${maxCostUsd} has no effect while nothing of the run has a price; set gpuUsdPerHour, to 0 if only hosted models cost money`;
}

/** Each group wakes the run once it is complete, and its history has room for 51,200 events. Open ones ride in its state. */
const MOST_AWAITED_GROUPS = 500;

function findExternalProblem(config: RunConfig): string | null {
  const { judge, external, groupsPerStep, groupSize, maxStaleness, replacementRounds } = config;
  if (isAwaited(judge) !== (external !== undefined))
    return `the judge ${judge} and the rewards from outside contradict each other; give the agent reward: external({ … }), and leave judge out`;
  if (external === undefined) return null;
  if ((judge === REVIEW) !== (external.review !== undefined))
    return `the judge ${judge} and the review contradict each other; give the agent reward: review({ … }), and leave judge out`;
  if (maxStaleness > 0)
    return `maxStaleness must be 0 with rewards from outside (a step waits for its rewards before the next one is played), got ${maxStaleness}; leave maxStaleness out, or set groupsAhead instead`;
  if (replacementRounds > 0)
    return `replacementRounds must be 0 with rewards from outside (a step would wait for them again), got ${replacementRounds}; leave replacementRounds out, or set groupsAhead to play further groups`;
  if (groupsPerStep > MOST_AWAITED_GROUPS)
    return `groupsPerStep must be at most ${MOST_AWAITED_GROUPS} with rewards from outside, got ${groupsPerStep}; lower it, and raise steps`;
  const { minimum = 0 } = external;
  if (minimum <= groupSize) return null;
  return `minimum of external must be at most groupSize, got ${minimum} of ${groupSize}; lower one or raise the other`;
}

function findStartProblem({ startAdapter, parent, train }: RunConfig): string | null {
  if (startAdapter === undefined) return null;
  if (train.lora === null)
    return 'startAdapter has no effect without LoRA: all weights are trained, without an adapter; leave startAdapter out';
  if (parent === null) return null;
  return 'startAdapter has no effect with a parent: a run begins with the one or the other; leave startAdapter out';
}

function findRestartsProblem(config: RunConfig): string | null {
  const { learningRateRestarts: restarts, learningRateSchedule, steps, warmupSteps } = config;
  if (restarts === 0) return null;
  if (learningRateSchedule !== 'cosine')
    return `learningRateRestarts ${restarts} has no effect with the schedule ${learningRateSchedule}; choose the schedule cosine, or leave learningRateRestarts out`;
  if (restarts < steps - warmupSteps - 1) return null;
  return `learningRateRestarts must be fewer than the steps after the first one at the full rate, got ${restarts} of ${steps - warmupSteps - 1}; lower learningRateRestarts`;
}

function findReductionProblem({ reduction, reductionTokens }: TrainConfig): string | null {
  if (reduction === 'constant' && reductionTokens === undefined)
    return 'reduction constant must be given reductionTokens (how many tokens an attempt counts as), got none; set reductionTokens to what an attempt samples at most';
  if (reduction !== 'constant' && reductionTokens !== undefined)
    return `reductionTokens ${reductionTokens} has no effect with the reduction ${reduction}; set reduction to constant, or leave reductionTokens out`;
  return null;
}

function findBaselineProblem({ baseline, advantageScale, leaveOneOut }: TrainConfig): string | null {
  if (baseline === 'group') return null;
  if (advantageScale !== 'none')
    return `advantageScale must be none with the baseline ${baseline}, which has no group to scale by, got ${advantageScale}; leave advantageScale out`;
  if (!leaveOneOut) return null;
  return `leaveOneOut has no effect with the baseline ${baseline}, which is no mean of a group; leave leaveOneOut out`;
}

function findCorrectionProblem({ correction, correctionCap }: TrainConfig): string | null {
  if (correction !== 'none' || correctionCap === undefined) return null;
  return `correctionCap ${correctionCap} has no effect without a correction; set correction, for example to token-truncate, or leave correctionCap out`;
}

function findKlProblem({ klCoefficient, klAs, klEstimator, klReference }: TrainConfig): string | null {
  const { klAs: place, klEstimator: estimator } = SCHEMA_DEFAULTS.train;
  if (klAs === 'reward' && klEstimator !== estimator)
    return `klEstimator ${klEstimator} has no effect with klAs reward (only the loss has an estimator); leave klEstimator out`;
  if (klCoefficient > 0) return null;
  if (klReference !== undefined)
    return 'klReference has no effect without a klCoefficient above 0; set klCoefficient, or leave klReference out';
  if (klEstimator !== estimator)
    return `klEstimator ${klEstimator} has no effect without a klCoefficient above 0; set klCoefficient, or leave klEstimator out`;
  if (klAs === place) return null;
  return `klAs ${klAs} has no effect without a klCoefficient above 0; set klCoefficient, or leave klAs out`;
}

function findOverlongProblem({ overlongBuffer, overlongPenalty }: TrainConfig): string | null {
  if (overlongBuffer > 0 || overlongPenalty === SCHEMA_DEFAULTS.train.overlongPenalty) return null;
  return `overlongPenalty ${overlongPenalty} has no effect without an overlongBuffer above 0; set overlongBuffer, or leave overlongPenalty out`;
}

function findStepsProblem({ maxStaleness, warmupSteps, steps }: RunConfig): string | null {
  if (warmupSteps >= steps)
    return `warmupSteps must be fewer than steps, got ${warmupSteps} of ${steps}; lower warmupSteps`;
  if (maxStaleness < steps) return null;
  return `maxStaleness must be fewer than steps (a step is played at most so many steps ahead), got ${maxStaleness} of ${steps}; lower maxStaleness`;
}

function findAheadProblem(config: RunConfig): string | null {
  return findOverlapProblem(config) ?? findWindowProblem(config);
}

function findOverlapProblem({ maxStaleness, supervised }: RunConfig): string | null {
  if (maxStaleness === 0 || supervised === undefined) return null;
  return `maxStaleness must be 0 in a run with supervised steps (the first attempts would be sampled before they are trained), got ${maxStaleness}; leave maxStaleness out`;
}

function findWindowProblem(config: RunConfig): string | null {
  const { groupsAhead, maxRewardStaleness, groupsPerStep, judge } = config;
  if (groupsAhead === 0) {
    if (maxRewardStaleness === SCHEMA_DEFAULTS.maxRewardStaleness) return null;
    return `maxRewardStaleness ${maxRewardStaleness} has no effect without groupsAhead; set groupsAhead, or leave maxRewardStaleness out`;
  }
  if (!isAwaited(judge))
    return `groupsAhead ${groupsAhead} has no effect, because this agent's groups wait for no reward; set maxStaleness to play ahead of training, or give the agent reward: external({ … })`;
  if (groupsPerStep + groupsAhead > MOST_AWAITED_GROUPS)
    return `groupsPerStep and groupsAhead must be at most ${MOST_AWAITED_GROUPS} together, got ${groupsPerStep} and ${groupsAhead}; lower groupsAhead`;
  const most = groupsPerStep * maxRewardStaleness;
  if (groupsAhead <= most) return null;
  return `groupsAhead must be at most groupsPerStep × maxRewardStaleness, ${most} (later groups would be left out as too old), got ${groupsAhead}; lower groupsAhead, or raise maxRewardStaleness`;
}

function findUpdatesProblem({ groupsPerStep, train: { miniBatches } }: RunConfig): string | null {
  if (miniBatches <= groupsPerStep) return null;
  return `miniBatches must be at most groupsPerStep (a mini-batch is made of whole groups), got ${miniBatches} of ${groupsPerStep}; lower miniBatches`;
}

const DEPENDENTS = [
  ['reduction', 'reductionTokens'],
  ['correction', 'correctionCap'],
  ['klCoefficient', 'klAs'],
  ['klCoefficient', 'klEstimator'],
  ['klAs', 'klEstimator'],
  ['klCoefficient', 'klReference'],
  ['overlongBuffer', 'overlongPenalty'],
] as const;

/** Drops options that depend on a changed option. */
export function withoutDependents(train: TrainConfig, isChanged: (name: keyof TrainConfig) => boolean): TrainConfig {
  const gone = new Set<string>(DEPENDENTS.filter(([name]) => isChanged(name)).map(([, dependent]) => dependent));
  return Object.fromEntries(Object.entries(train).filter(([name]) => !gone.has(name))) as TrainConfig;
}

/** Adapters that a step reads besides its parent's at the same time: the reference, and one that sampled. */
export function countCompared({ train, maxStaleness, groupsAhead }: RunConfig): number {
  return (train.klReference === undefined ? 0 : 1) + (maxStaleness + groupsAhead === 0 ? 0 : 1);
}
