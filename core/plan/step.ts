/**
 * The plan of a step: who plays what from which checkpoint, and what is trained. Pure: a step planned again, by
 * another process or after continue-as-new, is the same step. Run names are in no hash, so that a copy of a run under
 * another name gives the same bytes.
 */
import type {
  Checkpoint,
  CostLedger,
  GroupRef,
  GroupResult,
  InitialiseInput,
  OpenGroup,
  Position,
  Prepared,
  RolloutInput,
  RunConfig,
  TrainInput,
} from '../contract/contract.ts';
import { hashOf } from '../text/hashes.ts';
import { planDeal } from './deal.ts';
import { planSeats, type League } from './league.ts';
import { otherPolicies, trainedRoles } from '../rules/roles.ts';
import { omitDefaults, SCHEMA_DEFAULTS } from '../contract/schema-defaults.ts';
import { deriveSeed } from '../numbers/seeds.ts';
import { planRendering } from '../rules/supervised.ts';

/** All that the next step's rollouts depend on, beside the run's config. */
export interface PlayPosition {
  branch: number;
  prepared: Prepared;
  /** The last step that was played. */
  step: number;
  /** Policy that the next step samples from. */
  policy: Checkpoint;
  /** Number of groups since the start. */
  dealt: number;
  /** How many steps in a row had nothing to train. */
  emptySteps: number;
  /** Groups of earlier steps that no step has taken yet and, within a step, its own, in plan order: see plan-window.ts. */
  open: OpenGroup[];
  /** Opponents of the next step, where a league plays. */
  league?: League;
}

/** Position of a run between two steps. */
export interface RunPosition extends PlayPosition {
  /** Parent of the next training step: the newest commit, older than `step` if steps had nothing to train. */
  parent: Checkpoint;
  /** Policies for the `maxStaleness` steps after the next one, in order; the last one is `parent`. */
  upcoming?: Checkpoint[];
  /** The run's first checkpoint, where roles compete or a league plays. */
  start?: Checkpoint;
}

interface Place extends Omit<RunPosition, 'policy' | 'parent' | 'upcoming' | 'open'> {
  checkpoint: Checkpoint;
  /** By default none. */
  open?: OpenGroup[];
  /** Policies for the next steps, in order; by default the parent of the next training step. */
  policies?: Checkpoint[] | undefined;
}

/** As it is stored, and told to an activity. */
export function storePosition(
  { policy, upcoming = [], parent, prepared: _prepared, ...place }: RunPosition,
  costs: CostLedger,
): Position {
  return { ...place, checkpoint: parent, policies: [policy, ...upcoming], costs };
}

/** Position that a run continues from. */
export function restorePosition(prepared: Prepared, stored: Position): RunPosition {
  const { branch, step, checkpoint, policies, start, league, dealt, open, emptySteps } = stored;
  const players = { ...(start && { start }), ...(league && { league }) };
  return positionAt({ ...players, branch, prepared, step, checkpoint, policies, dealt, open, emptySteps });
}

/** Position of a run whose newest checkpoint is this one. */
export function positionAt({ checkpoint, policies = [checkpoint], open = [], ...place }: Place): RunPosition {
  const [policy = checkpoint, ...upcoming] = policies;
  return { ...place, open, policy, parent: checkpoint, ...(upcoming.length === 0 ? {} : { upcoming }) };
}

type Overlap = Pick<RunConfig, 'maxStaleness'>;

/** Whether steps are played while earlier ones train. */
export function isOverlapping({ maxStaleness }: Overlap): boolean {
  return maxStaleness > 0;
}

/** A run or a branch that begins has nothing older to sample from, however many steps overlap. */
export function policiesAtStart<Policy>({ maxStaleness }: Overlap, first: Policy): Policy[] {
  return Array.from({ length: maxStaleness + 1 }, () => first);
}

/** Consecutive steps without learning signal after which a run ends with a message. */
export const EMPTY_STEPS_LIMIT = 10;

/** Inputs include a fork's parent and the files of an imported adapter. */
export function planInitialise(config: RunConfig, branch: number): InitialiseInput {
  const { lora, optimizer } = config.train;
  const { baseModel, seed, parent, startAdapter } = config;
  const begun = { branch, baseModel, seed, ...(startAdapter === undefined ? {} : { startAdapter }) };
  const shape = lora && omitDefaults(lora, SCHEMA_DEFAULTS.train.lora);
  const policies = otherPolicies(config);
  const others = policies.length === 0 ? {} : { policies };
  const hashed = { ...begun, lora: shape, ...(parent && { parent: nameless(parent) }), ...others };
  const { chatTemplateSha256, chatTemplateKwargs } = config.rollout;
  const checked = {
    ...(chatTemplateSha256 === undefined ? {} : { chatTemplateSha256 }),
    ...(chatTemplateKwargs === undefined ? {} : { chatTemplateKwargs }),
    ...(config.supervised === undefined ? {} : { supervised: planRendering(config, config.supervised) }),
    optimizerKind: optimizer.kind,
  };
  return { ...begun, lora, ...checked, ...others, run: config.run, parent, inputsSha256: hashOf(hashed) };
}

/** Groups of a step from this number on. Their scenarios are those that come next in the deal. */
export function planGroups(config: RunConfig, position: PlayPosition, from: number, count: number): RolloutInput[] {
  return dealGroups(config, position, from, count).map(withInputsHash);
}

/** The groups that are trained, in plan order. */
export function trainedGroups(played: GroupResult[]): GroupResult[] {
  return played.filter((group) => group.use === 'trained').toSorted(inPlanOrder);
}

function inPlanOrder(a: Pick<GroupResult, 'step' | 'group'>, b: Pick<GroupResult, 'step' | 'group'>): number {
  return a.step - b.step || a.group - b.group;
}

/** The trained roles; nothing without roles. */
export function planRoles(config: RunConfig): Pick<RolloutInput, 'roles'> {
  const roles = trainedRoles(config);
  return roles === undefined ? {} : { roles };
}

export type RewardRules = Pick<RolloutInput, 'truncated' | 'overlongBuffer' | 'overlongPenalty' | 'baseline'>;

/** Picks the rules that change the given rewards, or how they are compared. */
export function rewardRules({ truncated, overlongBuffer, overlongPenalty, baseline }: RewardRules): RewardRules {
  return { truncated, overlongBuffer, overlongPenalty, ...(baseline === 'rae' ? { baseline } : {}) };
}

/** Hash of a step's inputs; a manifest holds all of them, so that it can be verified. */
export function hashTraining(
  hashed: Omit<TrainInput, 'run' | 'parent' | 'inputsSha256'>,
  parent: Omit<Checkpoint, 'run'>,
): string {
  const train = omitDefaults(hashed.train, SCHEMA_DEFAULTS.train);
  return hashOf({ ...hashed, train, parent: nameless(parent) });
}

/** A checkpoint as hashes know it: by its bytes and its place, not by the run's name. */
export function nameless({
  branch,
  step,
  manifestSha256,
  adapterSha256,
}: Omit<Checkpoint, 'run'>): Omit<Checkpoint, 'run'> {
  return { branch, step, manifestSha256, adapterSha256 };
}

export function toGroupRef({
  group,
  rolloutsSha256,
  judgedSha256,
}: Pick<GroupResult, 'group' | 'rolloutsSha256' | 'judgedSha256'>): GroupRef {
  if (judgedSha256 === null) throw new Error(`group ${group} is not judged`);
  return { group, rolloutsSha256, judgedSha256 };
}

/** A group as it is planned, without the hash of what is played. */
type DealtRollout = Omit<RolloutInput, 'inputsSha256'>;

function dealGroups(config: RunConfig, position: PlayPosition, from: number, count: number): DealtRollout[] {
  const { prepared, policy } = position;
  const deals = planDeal(config.seed, prepared.trainScenarios, position.dealt + from, count);
  return deals.map(({ scenario, epoch }, offset) => ({
    run: config.run,
    branch: position.branch,
    step: position.step + 1,
    group: from + offset,
    agent: config.agent,
    agentCodeSha256: prepared.agentCodeSha256,
    scenarios: prepared.scenarios,
    scenario,
    attempts: config.groupSize,
    // The epoch varies the seed, so that a small set's scenario is not played twice in the same way within a step.
    seed: deriveSeed([config.seed, 'group', epoch]),
    policy,
    ...planPlayers(config, position, from + offset),
    rollout: config.rollout,
    minimumGroupSize: config.minimumGroupSize,
    ...rewardRules(config.train),
    judge: config.judge,
  }));
}

type Players = Pick<RolloutInput, 'roles' | 'seats'>;

/** Players of a group's roles; nothing without roles. */
function planPlayers(config: RunConfig, position: PlayPosition, group: number): Players {
  const seats = planSeats(config, position, group);
  return { ...planRoles(config), ...(seats && { seats }) };
}

/** Players as hashes know them. */
export function namelessPlayers({ roles, seats }: Players): object {
  if (seats === undefined) return roles === undefined ? {} : { roles };
  const named = Object.entries(seats).map(([role, { checkpoint, policy }]) => {
    return [role, { checkpoint: nameless(checkpoint), policy }] as const;
  });
  return { ...(roles && { roles }), seats: Object.fromEntries(named) };
}

function withInputsHash(dealt: DealtRollout): RolloutInput {
  // The judge and the choice of trained groups change nothing about what is played.
  const { branch, step, group, scenarios, scenario, attempts, seed, policy, rollout, minimumGroupSize } = dealt;
  const place = { branch, step, group };
  const played = { scenarios, scenario, attempts, seed, policy: nameless(policy), rollout, minimumGroupSize };
  return { ...dealt, inputsSha256: hashOf({ ...place, ...played, ...namelessPlayers(dealt) }) };
}
