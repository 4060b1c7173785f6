/** Statistics for display, computed from results; pure. */
import type { GroupResult, RunConfig, RunState, StepSummary, TrainResult } from '../contract/contract.ts';
import { countUnused } from '../reports/learning-signal.ts';
import { NOT_STEERED } from '../names/lineage.ts';
import { trainedGroups, type RunPosition } from './step.ts';
import { mean, scaleOf } from '../numbers/statistics.ts';
import { learningRateOf } from '../rules/supervised.ts';

/** The newest notes that a run's state keeps; the rest is in the store. */
export const KEPT_NOTES = 50;
/** The first and the newest evaluations that it keeps; a run's workflow keeps the newest alone. */
export const KEPT_EVALS = 200;

export function newRunState(config: RunConfig): RunState {
  return {
    run: config.run,
    agent: config.agent,
    baseModel: config.baseModel,
    branch: 0,
    state: 'running',
    step: 0,
    steps: config.steps,
    phase: 'prepare',
    waitingFor: null,
    reward: null,
    evalBefore: null,
    evalAfter: null,
    evals: [],
    wallSeconds: 0,
    adapterSha256: null,
    failure: null,
    notes: [],
    ...NOT_STEERED,
    ...(config.external && { awaited: null }),
  };
}

/** One of several steps at a time: `step 7 rollout by checkpoint 5`. */
export function describeInProgress({ step, phase, policy }: NonNullable<RunState['overlap']>[number]): string {
  return `step ${step} ${phase === 'wait' ? 'played' : phase} by checkpoint ${policy}`;
}

/** Judging costs of one step. */
export interface StepJudging {
  metrics: Record<string, number>;
  seconds: Record<string, number>;
}

/** The agents' own rewards are the verdicts. */
export const NOT_JUDGED: StepJudging = { metrics: {}, seconds: {} };

/** Inputs of a step's summary. */
export interface StepFacts {
  config: RunConfig;
  /** After the step. */
  position: Pick<RunPosition, 'step' | 'parent'>;
  played: GroupResult[];
  /** Empty if the agents' own rewards are the verdicts. */
  judged: StepJudging;
  /** Null if no group carried a signal. */
  trained: TrainResult | null;
  seconds: Record<string, number>;
}

/** Rewards and metrics are means over all attempts that are data, left-out groups included: leaving out is no merit. */
export function summariseStep({ config, position, played, judged, trained, seconds }: StepFacts): StepSummary {
  return {
    step: position.step,
    reward: mean(played.flatMap((group) => group.rewards)),
    metrics: { ...meanMetrics(played), ...judged.metrics },
    train: trained?.metrics ?? {},
    learningRate: learningRateOf(config, position.step),
    groups: trainedGroups(played).length,
    // The last step of a pass over recorded conversations has fewer groups.
    replacedGroups: config.replacementRounds === 0 ? 0 : Math.max(0, played.length - config.groupsPerStep),
    unused: countUnused(played),
    failedAttempts: sum(played.map((group) => group.failed)),
    ...counted('truncatedAttempts', sum(played.map((group) => group.truncated))),
    attempts: sum(played.map((group) => group.attempts)),
    sampledTokens: sum(played.map((group) => group.sampledTokens)),
    seconds: { ...seconds, ...judged.seconds, ...prefixed('trainer', trained?.seconds ?? {}) },
    adapterSha256: position.parent.adapterSha256,
  };
}

/** Absent if there are none. */
function counted<Name extends string>(name: Name, count: number): Partial<Record<Name, number>> {
  return count === 0 ? {} : ({ [name]: count } as Record<Name, number>);
}

function meanMetrics(groups: GroupResult[]): Record<string, number> {
  const names = [...new Set(groups.flatMap((group) => Object.keys(group.metrics)))].toSorted();
  return Object.fromEntries(names.map((name) => [name, weightedMean(groups, name)]));
}

function weightedMean(groups: GroupResult[], name: string): number {
  const having = groups.filter((group) => Object.hasOwn(group.metrics, name) && group.rewards.length > 0);
  const weight = sum(having.map((group) => group.rewards.length));
  const scale = scaleOf(having.map((group) => group.metrics[name] ?? 0));
  const total = sum(having.map((group) => ((group.metrics[name] ?? 0) / scale) * group.rewards.length));
  return weight > 0 ? scale * (total / weight) : 0;
}

/** The trainer's own split of its seconds beside the workflow's: `load` becomes `trainer.load`. */
export function prefixed(prefix: string, values: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}.${name}`, value]));
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
