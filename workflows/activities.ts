/** The activities of runs and schedules, as workflows call them: a queue, a bound and a summary for each. */
import { proxyActivities, type ActivityOptions } from '@temporalio/workflow';

import type {
  AllocateInput,
  Allocated,
  AmendInput,
  Checkpoint,
  CheckpointInput,
  ConcludeInput,
  Evaluated,
  EvaluateInput,
  GatherInput,
  GatherResult,
  GroupResult,
  InitialiseInput,
  JudgeGivenInput,
  JudgeGivenResult,
  JudgeGroupInput,
  JudgeGroupResult,
  JudgeInput,
  JudgeResult,
  ChooseInput,
  ChooseResult,
  Located,
  LocateInput,
  PrepareInput,
  Prepared,
  Promoted,
  PromoteInput,
  RecordInput,
  RolloutConfig,
  RolloutInput,
  TrainInput,
  TrainResult,
} from '../core/contract.ts';
import type { TrackInput, TrackResult } from '../core/contract-outbound.ts';
import type { DeployStageInput } from '../core/contract-deploy.ts';
import { NON_RETRYABLE } from '../core/failures.ts';
import { omitDefaults, SCHEMA_DEFAULTS } from '../core/schema-defaults.ts';

/** Activities of TypeScript workers, which hold the agent. */
export interface AgentActivities {
  prepare(input: PrepareInput): Promise<Prepared>;
  rollout(input: RolloutInput): Promise<GroupResult>;
  /** Judges a group, if the run has a judge. */
  judgeGroup(input: JudgeGroupInput): Promise<JudgeGroupResult>;
  /** Decides groups that wait for rewards from outside, as far as they are complete or over. */
  judgeGiven(input: JudgeGivenInput): Promise<JudgeGivenResult>;
  /** Both of them, for each of several groups of a large step. */
  /** Stores the recorded conversations of a step as its groups. */
  gather(input: GatherInput): Promise<GatherResult>;
  judge(input: JudgeInput): Promise<JudgeResult>;
  /** The verdict on a step whose groups come from a window. */
  choose(input: ChooseInput): Promise<ChooseResult>;
  /** Writes files of a finished step that no later step waits for. */
  checkpoint(input: CheckpointInput): Promise<void>;
  evaluate(input: EvaluateInput): Promise<Evaluated>;
  record(input: RecordInput): Promise<void>;
  amend(input: AmendInput): Promise<void>;
  locate(input: LocateInput): Promise<Located>;
}

/** Activities of GPU workers, which hold the weights. */
export interface GpuActivities {
  initialise(input: InitialiseInput): Promise<TrainResult>;
  train(input: TrainInput): Promise<TrainResult>;
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
function playTimeoutMs(rollout: RolloutConfig, attempts: number): number {
  return Math.ceil(attempts / ATTEMPTS_AT_ONCE) * rollout.attemptTimeoutMs + rollout.callRetryBudgetMs + MINUTE_MS;
}

/** Asked twice, with the whole budget of an outage for each. */
function judgeTimeoutMs({ callTimeoutMs, callRetryBudgetMs }: RolloutConfig): number {
  return 2 * (callTimeoutMs + callRetryBudgetMs) + MINUTE_MS;
}

const { train } = SCHEMA_DEFAULTS;
const INPUT_DEFAULTS = { ...train, optimizerKind: train.optimizer.kind, train, group: train, config: SCHEMA_DEFAULTS };

/** Defaults are omitted, as in hashes: a worker of an older version refuses an option that it does not know. */
function payload<T extends object>(input: T): [T] {
  return [omitDefaults(input, INPUT_DEFAULTS) as T];
}

export function createGpuActivities(queue: string): GpuActivities {
  const gpu = proxyActivities<GpuActivities>({ ...RETRIED, startToCloseTimeout: MINUTE_MS });
  const onGpu = (summary: string): ActivityOptions => ({
    ...RETRIED,
    taskQueue: queue,
    startToCloseTimeout: GPU_TIMEOUT_MS,
    summary,
  });
  return {
    initialise: (input) => gpu.initialise.executeWithOptions(onGpu('step 0 · adapter'), payload(input)),
    train: (input) => gpu.train.executeWithOptions(onGpu(trainSummary(input)), payload(input)),
  };
}

export function createRunActivities(queues: RunQueues): RunActivities {
  const agent = proxyActivities<AgentActivities>({ ...RETRIED, startToCloseTimeout: MINUTE_MS });
  const onAgent = (bound: number, summary: string): ActivityOptions => ({
    ...RETRIED,
    taskQueue: queues.rollout,
    startToCloseTimeout: bound,
    summary,
  });
  return {
    ...createGpuActivities(queues.gpu),
    prepare: (input) => agent.prepare.executeWithOptions(onAgent(STORE_TIMEOUT_MS, 'prepare'), payload(input)),
    rollout: (input) => {
      const summary = `step ${input.step} · group ${input.group} · scenario ${input.scenario}`;
      const bound = playTimeoutMs(input.rollout, input.attempts);
      return agent.rollout.executeWithOptions(onAgent(bound, summary), payload(input));
    },
    judgeGroup: (input) => {
      const { step, group, judge, rollout } = input.group;
      const summary = `step ${step} · group ${group} · judged by ${judge}`;
      return agent.judgeGroup.executeWithOptions(onAgent(judgeTimeoutMs(rollout), summary), payload(input));
    },
    judgeGiven: (input) => {
      const summary = `step ${input.groups[0]?.step} · rewards of ${input.groups.length} groups`;
      return agent.judgeGiven.executeWithOptions(onAgent(STORE_TIMEOUT_MS, summary), payload(input));
    },
    gather: (input) => agent.gather.executeWithOptions(onAgent(STORE_TIMEOUT_MS, gatherSummary(input)), payload(input)),
    judge: (input) => {
      const summary = `step ${input.step} · verdict on ${input.groups.length} groups`;
      return agent.judge.executeWithOptions(onAgent(STORE_TIMEOUT_MS, summary), payload(input));
    },
    choose: (input) => {
      const summary = `step ${input.step} · choice of ${input.most} from ${input.window.length} groups`;
      return agent.choose.executeWithOptions(onAgent(STORE_TIMEOUT_MS, summary), payload(input));
    },
    checkpoint: (input) => {
      const summary = `step ${input.summary.step} · checkpoint`;
      return agent.checkpoint.executeWithOptions(onAgent(STORE_TIMEOUT_MS, summary), payload(input));
    },
    evaluate: (input) => {
      const summary = `step ${input.step} · eval · ${input.count} scenarios`;
      const bound = playTimeoutMs(input.rollout, input.count);
      return agent.evaluate.executeWithOptions(onAgent(bound, summary), payload(input));
    },
    record: (input) => agent.record.executeWithOptions(onAgent(MINUTE_MS, recordSummary(input)), payload(input)),
    amend: (input) => agent.amend.executeWithOptions(onAgent(MINUTE_MS, amendSummary(input)), payload(input)),
    locate: (input) => agent.locate.executeWithOptions(onAgent(STORE_TIMEOUT_MS, locateSummary(input)), payload(input)),
    lastRecord: (input) =>
      agent.record.executeWithOptions(
        { ...onAgent(MINUTE_MS, recordSummary(input)), scheduleToCloseTimeout: MINUTE_MS },
        payload(input),
      ),
  };
}

/** The activities of a schedule's firing, done by the workers that hold the agent. */
export interface ScheduleActivities {
  allocate(input: AllocateInput): Promise<Allocated>;
  conclude(input: ConcludeInput): Promise<Checkpoint>;
  promote(input: PromoteInput): Promise<Promoted>;
}

export function openScheduleActivities({ rollout }: RunQueues): ScheduleActivities {
  const options = { ...RETRIED, taskQueue: rollout, startToCloseTimeout: MINUTE_MS };
  const agent = proxyActivities<ScheduleActivities>(options);
  return {
    allocate: (input) => {
      const bound = { startToCloseTimeout: STORE_TIMEOUT_MS, summary: 'which run' };
      return agent.allocate.executeWithOptions({ ...options, ...bound }, payload(input));
    },
    conclude: (input) =>
      agent.conclude.executeWithOptions(
        { ...options, summary: `${input.state.run} · its last checkpoint` },
        payload(input),
      ),
    promote: (input) => {
      const summary = `${input.state.run} · compared with ${input.served}@production`;
      return agent.promote.executeWithOptions({ ...options, summary }, payload(input));
    },
  };
}

/** The activity that tells one target of a run, done by any worker of the store. */
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
  const options = {
    ...RETRIED,
    retry: { ...RETRIED.retry, initialInterval: SECOND_MS, backoffCoefficient: 2, maximumInterval: DEPLOY_PAUSE_MS },
    taskQueue: queue,
    startToCloseTimeout: DEPLOY_TIMEOUT_MS,
  };
  const outbound = proxyActivities<DeployActivities>(options);
  return {
    deployStage: (input) => outbound.deployStage.executeWithOptions({ ...options, summary: input.stage }, [input]),
  };
}

function trainSummary({ step, groups, supervised }: TrainInput): string {
  const count = supervised?.examples.length ?? groups.length;
  return `step ${step} · ${count} ${supervised ? 'examples' : 'groups'}`;
}

function gatherSummary({ step, conversations }: GatherInput): string {
  return `step ${step} · ${conversations.length} recorded conversations`;
}

function amendSummary({ changes }: AmendInput): string {
  return `step ${changes[0]?.step} · ${changes.map(({ setting, to }) => `${setting} ${to}`).join(', ')}`;
}

function locateSummary({ rollback }: LocateInput): string {
  return rollback === null ? 'the last finished step' : `step ${rollback.step} · a new branch`;
}

function recordSummary({ state }: RecordInput): string {
  return `step ${state.step} · ${state.state}`;
}
