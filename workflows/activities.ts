/** The activities of runs and schedules, as workflows call them: a queue, a bound and a summary for each. */
import { proxyActivities, type ActivityOptions } from '@temporalio/workflow';

import type * as wire from '../core/contract/contract.ts';
import type { TrackInput, TrackResult } from '../core/contract/outbound.ts';
import type { DeployStageInput } from '../core/contract/deploy.ts';
import { NON_RETRYABLE } from '../core/contract/failures.ts';
import { omitDefaults, SCHEMA_DEFAULTS } from '../core/contract/schema-defaults.ts';

/** Activities of TypeScript workers, which hold the agent. */
export interface AgentActivities {
  prepare(input: wire.PrepareInput): Promise<wire.Prepared>;
  rollout(input: wire.RolloutInput): Promise<wire.GroupResult>;
  /** Judges a group, if the run has a judge. */
  judgeGroup(input: wire.JudgeGroupInput): Promise<wire.JudgeGroupResult>;
  /** Decides groups that wait for rewards from outside, as far as they are complete or over. */
  judgeGiven(input: wire.JudgeGivenInput): Promise<wire.JudgeGivenResult>;
  /** Stores the recorded conversations of a step as its groups. */
  gather(input: wire.GatherInput): Promise<wire.GatherResult>;
  /** The verdict on a step: which groups leave its window, and which of them are trained. */
  judge(input: wire.JudgeInput): Promise<wire.JudgeResult>;
  /** Writes files of a finished step that no later step waits for. */
  checkpoint(input: wire.CheckpointInput): Promise<void>;
  evaluate(input: wire.EvaluateInput): Promise<wire.Evaluated>;
  record(input: wire.RecordInput): Promise<void>;
  amend(input: wire.AmendInput): Promise<void>;
  locate(input: wire.LocateInput): Promise<wire.Located>;
}

/** Activities of GPU workers, which hold the weights. */
export interface GpuActivities {
  initialise(input: wire.InitialiseInput): Promise<wire.TrainResult>;
  train(input: wire.TrainInput): Promise<wire.TrainResult>;
}

export interface RunActivities extends AgentActivities, GpuActivities {
  /** Writes the last state of a run that failed or was cancelled; the run ends even if that is impossible. */
  lastRecord: AgentActivities['record'];
}

export interface RunQueues {
  rollout: string;
  gpu: string;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

/**
 * A dead worker is noticed by its missing heartbeat within ten seconds; `startToCloseTimeout` bounds a live one that
 * gets nowhere. Failures are retried for ever, but for those that no retry mends; an activity that no worker knows is
 * `NotFoundError` in both SDKs.
 */
const RETRIED: ActivityOptions = {
  heartbeatTimeout: 10 * SECOND_MS,
  retry: {
    initialInterval: 500,
    backoffCoefficient: 1.5,
    maximumInterval: 5 * SECOND_MS,
    nonRetryableErrorTypes: [...NON_RETRYABLE, 'NotFoundError'],
  },
};

/**
 * Only for a GPU worker that beats and gets nowhere: a step takes as long as model, groups and devices make it, and one
 * that is cut off begins again.
 */
const GPU_TIMEOUT_MS = 7 * 24 * 60 * MINUTE_MS;

/** Reading and writing files, however many and however slow the store. */
const STORE_TIMEOUT_MS = 30 * MINUTE_MS;

/** A worker plays at least so many attempts of an activity at once, or the bound below is too short. */
const ATTEMPTS_AT_ONCE = 8;

/** Every attempt, wave after wave, takes all of its time; the engine is away once for the whole budget. */
function playTimeoutMs(rollout: wire.RolloutConfig, attempts: number): number {
  return Math.ceil(attempts / ATTEMPTS_AT_ONCE) * rollout.attemptTimeoutMs + rollout.callRetryBudgetMs + MINUTE_MS;
}

/** Asked twice, with the whole budget of an outage for each. */
function judgeTimeoutMs({ callTimeoutMs, callRetryBudgetMs }: wire.RolloutConfig): number {
  return 2 * (callTimeoutMs + callRetryBudgetMs) + MINUTE_MS;
}

const { train } = SCHEMA_DEFAULTS;
const INPUT_DEFAULTS = { ...train, optimizerKind: train.optimizer.kind, train, group: train, config: SCHEMA_DEFAULTS };

/** Defaults are omitted, as in hashes: a worker of an older version refuses an option that it does not know. */
function payload<T extends object>(input: T): [T] {
  return [omitDefaults(input, INPUT_DEFAULTS) as T];
}

/** Bound and summary of each activity. */
type Rows<Activities> = {
  readonly [Name in keyof Activities]: Activities[Name] extends (input: infer Input) => unknown ? Row<Input> : never;
};
type Row<Input> = readonly [timeoutMs: number | ((input: Input) => number), summary: (input: Input) => string];

const GPU_ROWS: Rows<GpuActivities> = {
  initialise: [GPU_TIMEOUT_MS, () => 'step 0 · adapter'],
  train: [GPU_TIMEOUT_MS, trainSummary],
};

const RECORD: Row<wire.RecordInput> = [MINUTE_MS, ({ state }) => `step ${state.step} · ${state.state}`];

const AGENT_ROWS: Rows<AgentActivities> = {
  prepare: [STORE_TIMEOUT_MS, () => 'prepare'],
  rollout: [
    (input) => playTimeoutMs(input.rollout, input.attempts),
    ({ step, group, scenario }) => `step ${step} · group ${group} · scenario ${scenario}`,
  ],
  judgeGroup: [
    ({ group }) => judgeTimeoutMs(group.rollout),
    ({ group: { step, group, judge } }) => `step ${step} · group ${group} · judged by ${judge}`,
  ],
  judgeGiven: [STORE_TIMEOUT_MS, ({ groups }) => `step ${groups[0]?.step} · rewards of ${groups.length} groups`],
  gather: [STORE_TIMEOUT_MS, (input) => `step ${input.step} · ${input.conversations.length} recorded conversations`],
  judge: [STORE_TIMEOUT_MS, ({ step, window }) => `step ${step} · verdict on ${window.length} groups`],
  checkpoint: [STORE_TIMEOUT_MS, ({ summary }) => `step ${summary.step} · checkpoint`],
  evaluate: [
    (input) => playTimeoutMs(input.rollout, input.count),
    ({ step, count }) => `step ${step} · eval · ${count} scenarios`,
  ],
  record: RECORD,
  amend: [
    MINUTE_MS,
    ({ changes }) => `step ${changes[0]?.step} · ${changes.map(({ setting, to }) => `${setting} ${to}`).join(', ')}`,
  ],
  locate: [
    STORE_TIMEOUT_MS,
    ({ rollback }) => (rollback === null ? 'the last finished step' : `step ${rollback.step} · a new branch`),
  ],
};

/** The activities of a table, called on a queue. */
function onQueue<Activities>(taskQueue: string, rows: Rows<Activities>, options: ActivityOptions = {}): Activities {
  const proxies = proxyActivities({ ...RETRIED, startToCloseTimeout: MINUTE_MS });
  const calls = Object.entries<Row<never>>(rows).map(([name, [timeoutMs, summary]]) => {
    const call = (input: never): Promise<unknown> => {
      const startToCloseTimeout = typeof timeoutMs === 'number' ? timeoutMs : timeoutMs(input);
      const bounds = { taskQueue, startToCloseTimeout, summary: summary(input) };
      return proxies[name]!.executeWithOptions({ ...RETRIED, ...options, ...bounds }, payload(input));
    };
    return [name, call] as const;
  });
  return Object.fromEntries(calls) as Activities;
}

export function createGpuActivities(queue: string): GpuActivities {
  return onQueue(queue, GPU_ROWS);
}

export function createRunActivities({ rollout, gpu }: RunQueues): RunActivities {
  const last = onQueue<Pick<AgentActivities, 'record'>>(
    rollout,
    { record: RECORD },
    { scheduleToCloseTimeout: MINUTE_MS },
  );
  return { ...createGpuActivities(gpu), ...onQueue(rollout, AGENT_ROWS), lastRecord: last.record };
}

/** The activities of a schedule's firing, done by the workers that hold the agent. */
export interface ScheduleActivities {
  allocate(input: wire.AllocateInput): Promise<wire.Allocated>;
  conclude(input: wire.ConcludeInput): Promise<wire.Checkpoint>;
  promote(input: wire.PromoteInput): Promise<wire.Promoted>;
}

export function openScheduleActivities({ rollout }: RunQueues): ScheduleActivities {
  return onQueue<ScheduleActivities>(rollout, {
    allocate: [STORE_TIMEOUT_MS, () => 'which run'],
    conclude: [MINUTE_MS, ({ state }) => `${state.run} · its last checkpoint`],
    promote: [MINUTE_MS, ({ state, served }) => `${state.run} · compared with ${served}@production`],
  });
}

/** The activity that delivers a run to one target, done by any worker of the store. */
export interface TrackActivities {
  track(input: TrackInput): Promise<TrackResult>;
}

/** A target that is away, or that refuses, is asked again less and less often, for as long as it takes. */
const LONGEST_PAUSE_MS = 5 * MINUTE_MS;

export function openTrackActivity(queue: string): TrackActivities {
  const outbound = proxyActivities<TrackActivities>({
    ...RETRIED,
    retry: { ...RETRIED.retry, initialInterval: SECOND_MS, backoffCoefficient: 2, maximumInterval: LONGEST_PAUSE_MS },
    taskQueue: queue,
    startToCloseTimeout: STORE_TIMEOUT_MS,
  });
  return { track: (input) => outbound.track(input) };
}

/** The activity that does one stage of a deployment, done by any worker of the store. */
export interface DeployActivities {
  deployStage(input: DeployStageInput): Promise<void>;
}

/** A job of a target's may wait for hours in a queue there. */
const DEPLOY_TIMEOUT_MS = 7 * 24 * 60 * MINUTE_MS;
const DEPLOY_PAUSE_MS = MINUTE_MS;

export function openDeployActivity(queue: string): DeployActivities {
  const retry = {
    ...RETRIED.retry,
    initialInterval: SECOND_MS,
    backoffCoefficient: 2,
    maximumInterval: DEPLOY_PAUSE_MS,
  };
  return onQueue<DeployActivities>(queue, { deployStage: [DEPLOY_TIMEOUT_MS, ({ stage }) => stage] }, { retry });
}

function trainSummary({ step, groups, supervised }: wire.TrainInput): string {
  const count = supervised?.examples.length ?? groups.length;
  return `step ${step} · ${count} ${supervised ? 'examples' : 'groups'}`;
}
