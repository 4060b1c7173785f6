/**
 * Everything that crosses a process boundary, once, in zod. The Python contract (`gpu-worker/temper_gpu/contract.py`) is
 * generated from these schemas; `test/contract/*.json` holds one example per type, read by both languages.
 *
 * Rules of the wire: `null` for none, no paths or URIs, numbers and references only (never tokens), non-finite numbers
 * are `null`. Workflows and planners import types from here, never the schemas (zod stays out of the workflow bundle).
 */
import { z } from 'zod';
import { RolloutConfig, RunConfig, TrainConfig } from './config.ts';
import { RunCosts, StepCosts, Usage } from './costs.ts';
import { EvalResult, JudgeSpending } from './groups.ts';
import { AwaitedRewards, ExampleRendering, ProductionSource, SupervisedStep } from './sources.ts';
import { Manifest, StepMetrics } from './manifest.ts';
import { LoraConfig } from './optimizer.ts';
import { CostLedger, Position } from './position.ts';
import { Checkpoint, LeagueScores, TrainedRoles } from './roles.ts';
import { baseModel, BlobRef, count, GroupRef, name, positive, roleName, sha256, StartAdapter } from './values.ts';

export * from './config.ts';
export * from './costs.ts';
export * from './groups.ts';
export * from './losses.ts';
export * from './manifest.ts';
export * from './optimizer.ts';
export * from './position.ts';
export * from './roles.ts';
export * from './sources.ts';
export { BASE_MODEL_PATTERN, BlobRef, firstIssue, GroupRef, isFromLaterVersion, StartAdapter } from './values.ts';

export const PrepareInput = z.strictObject({ config: RunConfig }).meta({ id: 'PrepareInput' });
export type PrepareInput = z.infer<typeof PrepareInput>;

/** A data set on a hub, as it was read. */
export const HubDataset = z
  .strictObject({
    dataset: z.string().max(200),
    config: z.string().max(200),
    split: z.string().max(200),
    /** Commit; null if the server named none. */
    revision: z
      .string()
      .regex(/^[0-9a-f]{40}$/)
      .nullable(),
  })
  .meta({ id: 'HubDataset' });
export type HubDataset = z.infer<typeof HubDataset>;

/** Scenarios are dealt by index: 0 … train − 1 for training, then the evaluation's. */
export const Prepared = z
  .strictObject({
    scenarios: BlobRef,
    trainScenarios: positive,
    evalScenarios: positive,
    /** Number of the agent's evaluation scenarios that these are a sample of; absent: they are all. */
    evalScenariosOf: positive.optional(),
    /** True if the agent named no evaluation scenarios and a seeded tenth was held out. */
    heldOut: z.boolean(),
    agentCodeSha256: sha256,
    /** Data sets that scenarios were read from; absent if they were the agent's own, or files. */
    datasets: z.array(HubDataset).optional(),
  })
  .meta({ id: 'Prepared' });
export type Prepared = z.infer<typeof Prepared>;

export const InitialiseInput = z
  .strictObject({
    run: name,
    branch: count,
    baseModel,
    seed: z.int().min(0),
    lora: LoraConfig.nullable(),
    /** Source of a fork's adapter and optimizer state; null: the adapter is seeded. */
    parent: Checkpoint.nullable(),
    /** Same as in `RunConfig`. */
    startAdapter: StartAdapter.optional(),
    /** Same as in `RolloutConfig`: checked before the run begins, not part of the result. */
    ...RolloutConfig.pick({ chatTemplateKwargs: true, chatTemplateSha256: true }).shape,
    /** The examples of the run's supervised steps; likewise. */
    supervised: ExampleRendering.optional(),
    /** The policies beside `main`, in order. Each adapter's seed comes from the run's and the policy's name. */
    policies: z.array(roleName).optional(),
    /** Same as in the run's `TrainConfig`: checked, not part of the result. */
    optimizerKind: TrainConfig.shape.optimizer.shape.kind,
    inputsSha256: sha256,
  })
  .meta({ id: 'InitialiseInput' });
export type InitialiseInput = z.infer<typeof InitialiseInput>;

export const TrainInput = z
  .strictObject({
    run: name,
    branch: count,
    step: positive,
    baseModel,
    parent: Checkpoint,
    /** Same as in `Manifest`: each group's rollouts name the adapter that sampled it. */
    samplers: Manifest.shape.samplers,
    /** The groups to train, in plan order; none in a supervised step. */
    groups: z.array(GroupRef),
    learningRate: z.number().min(0),
    seed: z.int().min(0),
    train: TrainConfig,
    /** The examples to train instead of groups. Absent: the step trains its groups. */
    supervised: SupervisedStep.optional(),
    /** The policy that each trained role trains. Absent: the agent has no roles. */
    roles: TrainedRoles.optional(),
    /** Scores of the league after this step's attempts, to be kept in its commit. */
    league: LeagueScores.optional(),
    inputsSha256: sha256,
  })
  .meta({ id: 'TrainInput' });
export type TrainInput = z.infer<typeof TrainInput>;

export const TrainResult = z
  .strictObject({
    checkpoint: Checkpoint,
    metrics: StepMetrics,
    /** Seconds by phase (load, train, commit, publish); display only. */
    seconds: z.record(z.string(), z.number()),
    /** True if the step had been committed before this attempt of the activity. */
    found: z.boolean(),
  })
  .meta({ id: 'TrainResult' });
export type TrainResult = z.infer<typeof TrainResult>;

export const RUN_STATES = [
  'running',
  'pausing',
  'paused',
  'stopping',
  'completed',
  'stopped',
  'cancelled',
  'failed',
] as const;

/** One changed setting, in effect from a step of a branch on, and on all later branches. */
export const SettingChange = z
  .strictObject({
    /** Settings that `temper set` may change; `core/rules/settings.ts` maps them to fields of RunConfig. */
    setting: z.enum([
      'learningRate',
      'temperature',
      'steps',
      'groupSize',
      'evalEvery',
      'gpuUsdPerHour',
      'maxCostUsd',
      'maxHours',
    ]),
    /** Null if there was none. */
    from: z.number().nullable(),
    to: z.number(),
    branch: count,
    step: positive,
    reason: z.string().nullable(),
  })
  .meta({ id: 'SettingChange' });
export type SettingChange = z.infer<typeof SettingChange>;

/** A branch replaces its parent after `fromStep` of `fromBranch`; a run's lineage leads from branch 0 to the newest. */
export const Branch = z.strictObject({ branch: positive, fromBranch: count, fromStep: count }).meta({ id: 'Branch' });
export type Branch = z.infer<typeof Branch>;

export const Pause = z.strictObject({ since: z.string(), reason: z.string().nullable() }).meta({ id: 'Pause' });
export type Pause = z.infer<typeof Pause>;

/** One line of a run's curve. */
export const StepSummary = z
  .strictObject({
    step: positive,
    reward: z.number().nullable(),
    metrics: z.record(z.string(), z.number()),
    train: StepMetrics,
    learningRate: z.number(),
    /** The trained ones; none where the step was skipped. */
    groups: count,
    replacedGroups: count,
    /** The others, by reason. */
    unused: z.record(z.string(), count),
    failedAttempts: count,
    /** Those that were cut off; absent: none, or a line from before this field was there. */
    truncatedAttempts: count.optional(),
    attempts: count,
    sampledTokens: count,
    seconds: z.record(z.string(), z.number()),
    adapterSha256: sha256,
    /** Number of a supervised step's examples; it has no groups. Absent: not a supervised step. */
    examples: count.optional(),
    /** Tokens of all attempts of the step. Absent: it played none, or a line from before this field was there. */
    usage: Usage.optional(),
    /** Absent: a line from before this field was there, or of a script's own loop. */
    costs: StepCosts.optional(),
  })
  .meta({ id: 'StepSummary' });
export type StepSummary = z.infer<typeof StepSummary>;

/** `runs/<run>/state.json`: for display, never read by a workflow. Its steps are in `runs/<run>/steps/`. */
export const RunState = z
  .strictObject({
    run: name,
    agent: name,
    baseModel,
    branch: count,
    state: z.enum(RUN_STATES),
    step: count,
    steps: positive,
    phase: z.enum(['prepare', 'initialise', 'eval', 'rollout', 'judge', 'train', 'done']),
    waitingFor: z.string().nullable(),
    reward: z.number().nullable(),
    evalBefore: EvalResult.nullable(),
    evalAfter: EvalResult.nullable(),
    evals: z.array(EvalResult),
    wallSeconds: z.number(),
    adapterSha256: sha256.nullable(),
    failure: z.string().nullable(),
    notes: z.array(z.string()),
    pause: Pause.nullable(),
    /** The newest ones. */
    changes: z.array(SettingChange),
    /** Empty on branch 0. */
    lineage: z.array(Branch),
    /** Judging costs so far; null if the agent's own reward is the verdict. */
    judging: JudgeSpending.nullable(),
    /** Steps in progress, oldest first, where they may overlap; `policy`: the step of the checkpoint that they sample from. */
    overlap: z.array(z.strictObject({ step: positive, phase: z.string(), policy: count })).optional(),
    /** Rewards from outside that the run waits for; null: it waits for none. Absent: it never does. */
    awaited: AwaitedRewards.nullable().optional(),
    /** Time, tokens and money so far. Absent: a state from before this field was there, or of a script's own loop. */
    costs: RunCosts.optional(),
  })
  .meta({ id: 'RunState' });
export type RunState = z.infer<typeof RunState>;

/** The run's state between steps, for display. */
export const RecordInput = z.strictObject({ state: RunState }).meta({ id: 'RecordInput' });
export type RecordInput = z.infer<typeof RecordInput>;

/** A finished step with no work waiting on the rest of it: the state and the position after it, and its line of the curve. */
export const CheckpointInput = z
  .strictObject({ state: RunState, summary: StepSummary, position: Position })
  .meta({ id: 'CheckpointInput' });
export type CheckpointInput = z.infer<typeof CheckpointInput>;

/** Run of a schedule's firing, identified by the firing's workflow id: repeated calls get the same run. */
export const AllocateInput = z
  .strictObject({
    schedule: name,
    firing: z.string().min(1),
    /** Configuration of every run of the schedule, except name, seed and parent. */
    config: RunConfig,
    /** Checkpoint that the first run starts from; null: a fresh adapter. */
    from: Checkpoint.nullable(),
    /** Recorded conversations that the run trains. Absent: it plays its agent. */
    production: ProductionSource.optional(),
  })
  .meta({ id: 'AllocateInput' });
export type AllocateInput = z.infer<typeof AllocateInput>;

/** `concluded`: this firing has trained its run already. A time can be fired twice, by a backfill. */
export const Allocated = z
  .strictObject({
    number: positive,
    config: RunConfig,
    concluded: Checkpoint.nullable(),
    /** Says that there are fewer conversations with feedback than the schedule asks for: nothing is trained. */
    tooFew: z.string().optional(),
  })
  .meta({ id: 'Allocated' });
export type Allocated = z.infer<typeof Allocated>;

/** A firing's run has succeeded: the parent of the next one. */
export const ConcludeInput = z
  .strictObject({ schedule: name, number: positive, state: RunState })
  .meta({ id: 'ConcludeInput' });
export type ConcludeInput = z.infer<typeof ConcludeInput>;

/**
 * A firing's checkpoint is promoted if it is not significantly worse on held-out scenarios than the one that its run
 * started from.
 */
export const PromoteInput = ConcludeInput.extend({ served: name, checkpoint: Checkpoint }).meta({ id: 'PromoteInput' });
export type PromoteInput = z.infer<typeof PromoteInput>;

/** `reason`: why it was refused; null if it is promoted. */
export const Promoted = z.strictObject({ reason: z.string().nullable() }).meta({ id: 'Promoted' });
export type Promoted = z.infer<typeof Promoted>;

/** Keeps changed settings for the life of the run: the `number`th time that any were changed, counted from 1. */
export const AmendInput = z
  .strictObject({ run: name, number: positive, changes: z.array(SettingChange).min(1) })
  .meta({ id: 'AmendInput' });
export type AmendInput = z.infer<typeof AmendInput>;

/** Resume point of a run: a new branch after `rollback.step`, one per `requestId`; null: the newest branch's end. */
export const LocateInput = z
  .strictObject({
    run: name,
    /** `costs`: those of the run until then, since a rollback refunds nothing. */
    rollback: z.strictObject({ requestId: z.string().min(1), step: count, costs: CostLedger }).nullable(),
  })
  .meta({ id: 'LocateInput' });
export type LocateInput = z.infer<typeof LocateInput>;

/** A run's position as its store has it, with what the run needs to be shown and steered. */
export const Located = Position.extend({
  lineage: z.array(Branch),
  /** The newest evaluations up to the step, and the first; for display. */
  evals: z.array(EvalResult),
  /** All settings that were ever changed, in order, and how many times any were. */
  changes: z.array(SettingChange),
  amendments: count,
}).meta({ id: 'Located' });
export type Located = z.infer<typeof Located>;
