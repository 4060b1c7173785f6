/**
 * Steps from what is complete (`--groups-ahead`): a step deals groups until as many are open as it trains and N more. It
 * trains the first ones in plan order that are complete when enough are; the others stay open for later steps. Pure.
 */
import type {
  ChooseInput,
  Checkpoint,
  GroupRef,
  GroupResult,
  OpenGroup,
  RolloutInput,
  RunConfig,
  Sampler,
  TrainInput,
} from './contract.ts';
import { hashOf } from './hashes.ts';
import {
  nameless,
  planFirstGroups,
  planNext,
  planRoles,
  planTraining,
  planTrainingOf,
  rewardRules,
  trainedGroups,
  toGroupRef,
  type RunPosition,
} from './plan-step.ts';
import { omitDefaults, SCHEMA_DEFAULTS } from './schema-defaults.ts';

type Windowed = Pick<RunConfig, 'groupsAhead'>;

/** Whether groups stay open across steps. */
export function hasWindow({ groupsAhead }: Windowed): boolean {
  return groupsAhead > 0;
}

/** Open groups of a run or a branch that begins. */
export function openAtStart(config: Windowed): Pick<RunPosition, 'open'> {
  return hasWindow(config) ? { open: [] } : {};
}

/** Whether a step may still train it. Its staleness is that of the next step. */
export function isFresh({ maxRewardStaleness }: Pick<RunConfig, 'maxRewardStaleness'>, group: OpenGroup): boolean {
  return group.staleness <= maxRewardStaleness;
}

/** Groups that a step deals, so that its window is full. */
export function planTopUp(config: RunConfig, position: RunPosition): RolloutInput[] {
  const { open = [] } = position;
  const fresh = open.filter((group) => isFresh(config, group));
  return planFirstGroups(config, position, config.groupsPerStep + config.groupsAhead - fresh.length);
}

/** The window of a step, once the groups that it dealt are played. */
export function withPlayed(position: RunPosition, dealt: RolloutInput[], played: GroupResult[]): RunPosition {
  const opened = dealt.map(({ branch, policy, inputsSha256 }, index): OpenGroup => {
    return { branch, policy, staleness: 0, inputsSha256, result: played[index]! };
  });
  return { ...position, dealt: position.dealt + dealt.length, open: [...(position.open ?? []), ...opened] };
}

/** The window with what has become of some of its groups. */
export function withResults(position: RunPosition, results: GroupResult[]): RunPosition {
  const open = (position.open ?? []).map((group) => ({
    ...group,
    result: results.find((result) => isSame(result, group.result)) ?? group.result,
  }));
  return { ...position, open };
}

/** Whether a step can be made: enough groups are complete, or none waits any more. */
export function canChoose(config: RunConfig, { open = [] }: RunPosition): boolean {
  const fresh = open.filter((group) => isFresh(config, group)).map(({ result }) => result);
  return trainedGroups(fresh).length >= config.groupsPerStep || fresh.every(({ use }) => use !== 'unjudged');
}

/** Input of a step's choice. Its hash depends on the window alone: what is complete is decided once, by the store. */
export function planChoice(config: RunConfig, position: RunPosition): ChooseInput {
  const { open = [] } = position;
  const hashed = {
    branch: position.branch,
    step: position.step + 1,
    most: config.groupsPerStep,
    window: open.map((group) => ({
      ...placeFrom(position, group),
      rolloutsSha256: group.result.rolloutsSha256,
      judgedSha256: group.result.judgedSha256,
      ...(isFresh(config, group) ? {} : { isStale: true as const }),
    })),
    minimumGroupSize: config.minimumGroupSize,
    ...rewardRules(config.train),
    ...planRoles(config),
  };
  return { ...hashed, run: config.run, inputsSha256: hashChoice(hashed) };
}

function hashChoice({ window, ...choice }: Omit<ChooseInput, 'run' | 'inputsSha256'>): string {
  const { branch, step, most, minimumGroupSize, roles } = choice;
  const places = window.map((group) => {
    const { judgedSha256: _judged, ...place } = group;
    return place;
  });
  const shaping = omitDefaults(rewardRules(choice), SCHEMA_DEFAULTS.train);
  return hashOf({ branch, step, most, window: places, minimumGroupSize, ...shaping, ...(roles && { roles }) });
}

/** Groups that leave the window, in plan order: the first that are trained, all that never will be. */
export function chooseFirst(most: number, decided: GroupResult[]): GroupResult[] {
  const trained = new Set(trainedGroups(decided).slice(0, most));
  return decided.filter((result) => trained.has(result) || (result.use !== 'trained' && result.use !== 'unjudged'));
}

/** Training of a step, on its own groups or on those chosen from its window. */
export function planStepTraining(config: RunConfig, position: RunPosition, chosen: GroupResult[]): TrainInput | null {
  const { open } = position;
  if (open === undefined) return planTraining(config, position, chosen);
  const trained = trainedGroups(chosen).map((result) => ({ ...findOpen(open, result), result }));
  const refs = trained.map((group) => ({ ...toGroupRef(group.result), ...placeFrom(position, group) }));
  return planTrainingOf(config, position, refs, planSamplers(trained));
}

/** Position after a step; groups that were not chosen stay open. */
export function planAfterStep(
  config: RunConfig,
  position: RunPosition,
  chosen: GroupResult[],
  checkpoint: Checkpoint | null,
): RunPosition {
  const { open, dealt } = position;
  if (open === undefined) return planNext(config, position, chosen, checkpoint);
  const left = open.filter(({ result }) => !chosen.some((other) => isSame(other, result)));
  const age = checkpoint === null ? 0 : 1;
  const stay = left.map((group) => ({ ...group, staleness: group.staleness + age }));
  return { ...planNext(config, position, [], checkpoint), dealt, open: stay };
}

/** The oldest one first; none if the parent sampled all. */
function planSamplers(trained: OpenGroup[]): Pick<TrainInput, 'samplers'> {
  const older = new Map<string, Sampler>();
  for (const { policy, staleness } of trained)
    if (staleness > 0) older.set(policy.manifestSha256, { ...nameless(policy), staleness });
  return older.size === 0 ? {} : { samplers: [...older.values()] };
}

/** Place of a group as a step names it: without what is the step's own. */
function placeFrom(
  { branch, step }: Pick<RunPosition, 'branch' | 'step'>,
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
