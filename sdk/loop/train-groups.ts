/** `model.train`: publishes verdicts, plans one step and trains it in its workflow, or finds it in the store. */
import type { GroupResult, JudgeInput } from '../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { isReward, REWARD_RULE } from '../../core/rules/given-values.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { planLoopTraining } from './plan-loop.ts';
import { planRoles, rewardRules, toGroupRef, trainedGroups, type RewardRules } from '../../core/plan/step.ts';
import { overlongCosts } from '../../core/plan/shaped-rewards.ts';
import { countUnused, describeSkipped, describeUnused } from '../../core/reports/learning-signal.ts';
import { findNewestCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { parseJudged, type StoredVerdict } from '../../store/records/groups/group-files.ts';
import { judgeByAgent, judgeTurns, summariseGroup } from '../../store/records/groups/group-result.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { judgedKey, skippedKey } from '../../store/layout.ts';
import { readCommit } from '../../store/records/runs/run-reader.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import type { AttemptRecord, Judged } from '../../store/records/groups/trajectories.ts';
import { nameChoices } from '../../play/recorder/turns.ts';
import { explanationOf, rewardOf, roleRewardsOf } from './attempt-trajectories.ts';
import { findOrigin, requireGathered, type GivenGroup, type StoredGroup } from './gathered-group.ts';
import type { LoopRun } from './loop-run.ts';
import { printWarnings } from './loop-state.ts';
import { conflict, finish, takeStep, type TrainedStep } from './take-step.ts';
import { checkTrain, readSettings, type TrainSettings, type TrainOptions } from './train-settings.ts';
import type { TrajectoryGroup } from './trajectory-group.ts';
import { rewardsOfTurns } from './trajectory-record.ts';
import type { Trajectory } from './trajectory.ts';

export async function trainGroups(
  run: LoopRun,
  groups: readonly TrajectoryGroup[],
  options: TrainOptions,
): Promise<TrainedStep> {
  checkTrain(options);
  const given = groups.map((group) => findOrigin(run, group, 'train'));
  const step = findStep(run, given, options);
  const settings = await readSettings(run, options, { groups: groups.length });
  const results = await judgeAll(run, given, settings);
  if (results.every(({ calls }) => calls === 0) && !settings.allowEmptyStep) throw nothingSampled(run);
  const refs = trainedGroups(results).map(toGroupRef);
  const parent = await findParent(run, step);
  return refs.length === 0
    ? skip(run, step, results)
    : takeStep(run, planLoopTraining(run.config, settings, { step, parent, groups: refs }), results);
}

/** The groups say which step they are for: given again, they find what was made of them. */
function findStep(run: LoopRun, given: readonly GivenGroup[], { allowEmptyStep = false }: TrainOptions): number {
  const steps = [...new Set(given.map(({ origin }) => origin.step))];
  const [step = run.step + 1] = steps;
  if (given.length === 0 && !allowEmptyStep) throw noGroups(run);
  if (steps.length > 1) throw severalSteps(steps);
  if (new Set(given.map(({ origin }) => origin.group)).size < given.length) throw groupTwice();
  if (step > run.step + 1)
    throw badConfig(
      `the next step to train is ${run.step + 1}, got groups of step ${step}; train step ${run.step + 1} first`,
    );
  return step;
}

/** A step in the store was made from what stood before it. */
async function findParent(run: LoopRun, step: number) {
  if (step > run.step) return run.checkpoint;
  return (await findNewestCheckpoint(run.store, run.name, step - 1)) ?? run.checkpoint;
}

async function judgeAll(run: LoopRun, given: readonly GivenGroup[], settings: TrainSettings): Promise<GroupResult[]> {
  const results: GroupResult[] = [];
  const rules = { ...rewardRules(settings.train), ...planRoles(run.config) };
  for (const group of given) {
    const stored = await requireGathered(run, group.origin);
    const { judged, sha256 } = await publishVerdict(run, stored, judge(stored, group, rules));
    const { step, group: index } = stored.place;
    const plan = { step, group: index, scenario: index, minimumGroupSize: settings.minimumGroupSize, ...rules };
    results.push(summariseGroup(plan, stored.rollouts, judged, sha256));
  }
  return results;
}

/** Rewards as they are now: a script may have changed them, or taken attempts out. */
function judge({ rollouts, sha256 }: StoredGroup, { byAttempt }: GivenGroup, { roles, ...rules }: JudgeRules): Judged {
  const { header, attempts } = rollouts;
  const given = attempts.map(({ attempt }) => byAttempt.get(attempt) ?? []);
  for (const { totalReward } of given.flat()) checkReward(totalReward);
  const rewards = given.map(rewardOf);
  const roleRewards = given.map((trajectories) => roleRewardsOf(trajectories) ?? null);
  const turns = judgeTurns(attempts.map((record, index) => earnedByCall(record, given[index]!)));
  const own = judgeByAgent(rollouts, sha256, rules);
  const isOwn =
    attempts.every(({ reward }, index) => reward === rewards[index]) &&
    (roles === undefined || hashOf(own.roleRewards ?? null) === hashOf(roleRewards)) &&
    JSON.stringify(own.turnRewards) === JSON.stringify(turns.turnRewards);
  return {
    schema: 1,
    inputsSha256: header.inputsSha256,
    rolloutsSha256: sha256,
    judge: isOwn ? 'agent' : 'script',
    rewards,
    ...(roles === undefined ? {} : { roleRewards }),
    ...turns,
    ...overlongCosts(rules, attempts),
    explanations: given.map(explanationOf),
    metrics: {},
  };
}

/** Which turn is which is written where some turn had a reward when the group was kept. */
function earnedByCall({ calls }: AttemptRecord, trajectories: readonly Trajectory[]): number[] {
  const rewards = new Map(trajectories.flatMap((trajectory) => [...rewardsOfTurns(trajectory)]));
  if (rewards.size > 0 && calls.some(({ turn }) => turn === undefined)) throw lateTurnRewards();
  return nameChoices(calls).map((name) => rewards.get(name) ?? 0);
}

function checkReward(reward: number): void {
  if (isReward(reward)) return;
  throw badConfig(`a trajectory's reward must be ${REWARD_RULE}, got ${reward}; set it before training`);
}

type JudgeRules = RewardRules & Pick<JudgeInput, 'roles'>;

async function publishVerdict(run: LoopRun, { place }: StoredGroup, judged: Judged): Promise<StoredVerdict> {
  const key = judgedKey(place);
  const asked = encodeJson(judged);
  const { bytes } = await run.store.publish(key, asked);
  if (hashBytes(bytes) === hashBytes(asked)) return { judged, sha256: hashBytes(bytes) };
  const { rewards } = parseJudged(bytes, key).judged;
  throw new TemperError(
    'StepConflict',
    `group ${place.group} of step ${place.step} of ${run.name} was already judged with the rewards ${JSON.stringify(rewards)}, not ${JSON.stringify(judged.rewards)}; compute the same rewards from the same trajectories, or start a new model`,
  );
}

/** Nothing to learn from: the step is over, and the policy stays. */
async function skip(run: LoopRun, step: number, results: GroupResult[]): Promise<TrainedStep> {
  const place = { run: run.name, branch: 0, step };
  const commit = await readCommit(run.store, place);
  if (commit !== null) throw conflict(run, { step, inputsSha256: 'of no group' }, commit.manifest.inputsSha256);
  const groups = results.map(toGroupRef);
  const unused = countUnused(results);
  const why = describeUnused(unused);
  const file = { schema: 1, inputsSha256: hashOf(groups), groups, why };
  await run.store.publish(skippedKey(place), encodeJson(file));
  if (step > run.step) {
    await finish(run, run.checkpoint, step, { played: results, trainer: {} });
    run.backend.print(`${run.name}: ${describeSkipped(step, unused)}`);
    printWarnings(run);
  }
  return { step, inferenceName: `${run.name}@${run.checkpoint.step}`, trained: false, reason: why, metrics: {} };
}

function lateTurnRewards(): TemperError {
  return badConfig(
    'turnRewards must be set when a trajectory is created or in afterEach, got some for a group that was gathered without any; gather it with them',
  );
}

const ALLOW = 'pass { allowEmptyStep: true } to allow a step that trains nothing';

function noGroups({ name }: LoopRun): TemperError {
  return badConfig(`${name} would be trained on nothing because the list of groups is empty; gather some, or ${ALLOW}`);
}

function nothingSampled({ name }: LoopRun): TemperError {
  return badConfig(
    `${name} would be trained on nothing because the trajectories hold messages but no choices that it sampled; put completion.choices[0] into messagesAndChoices, or ${ALLOW}`,
  );
}

function severalSteps(steps: readonly number[]): TemperError {
  return badConfig(
    `all groups must have been gathered for one step (the policy that sampled is the one that is trained), got groups of the steps ${steps.join(', ')}; train the groups of each step separately`,
  );
}

function groupTwice(): TemperError {
  return badConfig('each group may be given only once, got one twice; remove the duplicate');
}
