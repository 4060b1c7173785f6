/**
 * The window of a step. A step deals groups until as many are open as it trains and N more (`--groups-ahead`; 0 by
 * default), trains the first ones in plan order that are complete when enough are, and leaves the others open for later
 * steps. Pure.
 */
import type {
  Checkpoint,
  GroupRef,
  GroupResult,
  JudgeInput,
  OpenGroup,
  RolloutInput,
  RunConfig,
  Sampler,
  TrainInput,
} from '../contract/contract.ts';
import { hashOf } from '../text/hashes.ts';
import { admitToLeague, scoreLeague, toLeagueScores } from './league.ts';
import {
  hashTraining,
  nameless,
  planGroups,
  planRoles,
  positionAt,
  rewardRules,
  toGroupRef,
  trainedGroups,
  type PlayPosition,
  type RunPosition,
} from './step.ts';
import { GROUP_OF_ONE, planRecordedSamplers } from '../rules/production.ts';
import { omitDefaults, SCHEMA_DEFAULTS } from '../contract/schema-defaults.ts';
import { learningRateOf } from '../rules/supervised.ts';

/** Whether groups stay open across steps. */
export function hasWindow({ groupsAhead }: Pick<RunConfig, 'groupsAhead'>): boolean {
  return groupsAhead > 0;
}

/** Whether a step may still train it. Its staleness is that of the next step. */
export function isFresh({ maxRewardStaleness }: Pick<RunConfig, 'maxRewardStaleness'>, group: OpenGroup): boolean {
  return group.staleness <= maxRewardStaleness;
}

/** Groups that a step lacks: at first, those that fill its window; then one for each of its own without signal. */
export function planTopUp(config: RunConfig, position: PlayPosition): RolloutInput[] {
  const own = ownGroups(position).length;
  const kept = position.open.filter((group) => isFresh(config, group) && !isLost(position, group.result));
  return planGroups(config, position, own, config.groupsPerStep + config.groupsAhead - kept.length);
}

/** A group of the step itself that will not be trained. What has become of older groups meanwhile changes no plan. */
function isLost({ step }: PlayPosition, result: GroupResult): boolean {
  return result.step === step + 1 && result.use !== 'trained' && result.use !== 'unjudged';
}

function ownGroups({ step, open }: PlayPosition): OpenGroup[] {
  return open.filter(({ result }) => result.step === step + 1);
}

/** The window of a step with groups that it dealt, once they are played. */
export function withPlayed<Position extends PlayPosition>(
  position: Position,
  dealt: readonly Pick<RolloutInput, 'inputsSha256'>[],
  played: readonly GroupResult[],
): Position {
  const { branch, policy } = position;
  const opened = dealt.map(({ inputsSha256 }, index): OpenGroup => {
    return { branch, policy, staleness: 0, inputsSha256, result: played[index]! };
  });
  return { ...position, open: [...position.open, ...opened] };
}

/** The window with what has become of some of its groups. */
export function withResults<Position extends PlayPosition>(
  position: Position,
  results: readonly GroupResult[],
): Position {
  const open = position.open.map((group) => ({
    ...group,
    result: results.find((result) => isSame(result, group.result)) ?? group.result,
  }));
  return { ...position, open };
}

/** Whether a step can be made: enough groups are complete, or none waits any more. */
export function canChoose(config: RunConfig, { open }: PlayPosition): boolean {
  const fresh = open.filter((group) => isFresh(config, group)).map(({ result }) => result);
  return trainedGroups(fresh).length >= config.groupsPerStep || fresh.every(({ use }) => use !== 'unjudged');
}

/** Input of a step's verdict. Its hash depends on the window alone: what is complete is decided once, by the store. */
export function planJudging(config: RunConfig, position: PlayPosition): JudgeInput {
  const hashed = {
    branch: position.branch,
    step: position.step + 1,
    most: config.groupsPerStep,
    window: position.open.map((group) => ({
      ...placeFrom(position, group),
      rolloutsSha256: group.result.rolloutsSha256,
      judgedSha256: group.result.judgedSha256,
      ...(isFresh(config, group) ? {} : { isStale: true as const }),
    })),
    minimumGroupSize: config.production === undefined ? config.minimumGroupSize : GROUP_OF_ONE,
    ...rewardRules(config.train),
    ...planRoles(config),
  };
  const resultsSha256 = hashOf(chooseKnown(config, position));
  return { ...hashed, run: config.run, inputsSha256: hashJudging(hashed), resultsSha256 };
}

export function hashJudging({
  window,
  branch,
  step,
  most,
  minimumGroupSize,
  roles,
  ...rules
}: Omit<JudgeInput, 'run' | 'inputsSha256' | 'resultsSha256'>): string {
  const places = window.map(({ judgedSha256: _judged, ...place }) => place);
  const shaping = omitDefaults(rewardRules(rules), SCHEMA_DEFAULTS.train);
  return hashOf({ branch, step, most, window: places, minimumGroupSize, ...shaping, ...(roles && { roles }) });
}

/** The choice as far as the workflow knows: the store decides. */
export function chooseKnown(config: RunConfig, { open }: PlayPosition): GroupResult[] {
  const decided = open.map((group): GroupResult => {
    return isFresh(config, group) ? group.result : { ...group.result, use: 'stale' };
  });
  return chooseFirst(config.groupsPerStep, decided);
}

/** Groups that leave the window, in its order: the first that are trained, all that never will be. */
export function chooseFirst(most: number, decided: GroupResult[]): GroupResult[] {
  const trained = new Set(trainedGroups(decided).slice(0, most));
  return decided.filter((result) => trained.has(result) || (result.use !== 'trained' && result.use !== 'unjudged'));
}

/** Null if no group carries a signal: then there is no step to commit, and the policy stays. */
export function planTraining(config: RunConfig, position: RunPosition, chosen: GroupResult[]): TrainInput | null {
  const trained = trainedGroups(chosen).map((result) => ({ ...findOpen(position.open, result), result }));
  if (trained.length === 0) return null;
  const { parent } = position;
  const { production } = config;
  const league = scoreLeague(config, position, chosen);
  const hashed = {
    branch: position.branch,
    step: position.step + 1,
    baseModel: config.baseModel,
    groups: trained.map((group) => ({ ...toGroupRef(group.result), ...placeFrom(position, group) })),
    learningRate: learningRateOf(config, position.step + 1),
    seed: config.seed,
    train: config.train,
    ...planRoles(config),
    ...(production ? planRecordedSamplers(production, parent) : planSamplers(position, trained)),
    ...(league && { league: toLeagueScores(league) }),
  };
  return { ...hashed, run: config.run, parent, inputsSha256: hashTraining(hashed, parent) };
}

/** Position of a run after a step; without a new checkpoint the step was empty, and the league's scores stay. */
export function planNext(
  config: RunConfig,
  position: RunPosition,
  chosen: GroupResult[],
  checkpoint: Checkpoint | null,
): RunPosition {
  const newest = checkpoint ?? position.parent;
  const { start, league, open } = position;
  const scored = checkpoint === null ? league : scoreLeague(config, position, chosen);
  const left = open.filter(({ result }) => !chosen.some((other) => isSame(other, result)));
  const age = checkpoint === null ? 0 : 1;
  return positionAt({
    ...(start && { start }),
    ...(scored && { league: admitToLeague(config, scored, newest) }),
    branch: position.branch,
    prepared: position.prepared,
    step: position.step + 1,
    dealt: position.dealt + ownGroups(position).length,
    open: left.map((group) => ({ ...group, staleness: group.staleness + age })),
    checkpoint: newest,
    policies: [...(position.upcoming ?? []), newest],
    emptySteps: checkpoint === null ? position.emptySteps + 1 : 0,
  });
}

/** Position of a run that has played a step and may not have trained it yet; the next step samples from `policy`. */
export function planAhead(position: PlayPosition, chosen: GroupResult[], policy: Checkpoint): PlayPosition {
  return {
    branch: position.branch,
    prepared: position.prepared,
    step: position.step + 1,
    policy,
    dealt: position.dealt + ownGroups(position).length,
    open: [],
    emptySteps: trainedGroups(chosen).length > 0 ? 0 : position.emptySteps + 1,
  };
}

/** Older policies that sampled the groups, the oldest one first; none if the parent sampled all. */
function planSamplers(position: RunPosition, trained: OpenGroup[]): Pick<TrainInput, 'samplers'> {
  const { policy: sampler, upcoming = [], parent } = position;
  // A step that trained nothing leaves its parent's checkpoint to the step after it.
  const behind = new Set([sampler, ...upcoming, parent].map(({ manifestSha256 }) => manifestSha256)).size - 1;
  const older = new Map<string, Sampler>();
  for (const { policy, staleness } of trained)
    if (staleness + behind > 0)
      older.set(policy.manifestSha256, { ...nameless(policy), staleness: staleness + behind });
  return older.size === 0 ? {} : { samplers: [...older.values()] };
}

/** Place of a group as a step names it: without what is the step's own. */
function placeFrom(
  { branch, step }: Pick<PlayPosition, 'branch' | 'step'>,
  group: OpenGroup,
): Pick<GroupRef, 'group' | 'step' | 'branch'> {
  const { result } = group;
  return {
    group: result.group,
    ...(result.step === step + 1 ? {} : { step: result.step }),
    ...(group.branch === branch ? {} : { branch: group.branch }),
  };
}

function findOpen(open: OpenGroup[], result: GroupResult): OpenGroup {
  const found = open.find((group) => isSame(group.result, result));
  if (found === undefined) throw new Error(`group ${result.group} of step ${result.step} is not open`);
  return found;
}

type Placed = Pick<GroupResult, 'step' | 'group'>;

/** A step of a lineage has one branch. */
function isSame(one: Placed, other: Placed): boolean {
  return one.step === other.step && one.group === other.group;
}
