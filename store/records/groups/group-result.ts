/** Summary of a group's two files: a pure function of their contents. */
import type { GroupResult, RolloutInput } from '../../../core/contract/contract.ts';
import { REVIEW } from '../../../core/rules/external-rewards.ts';
import { toRewardMetrics } from '../../../core/rules/named-rewards.ts';
import type { RewardRules } from '../../../core/plan/step.ts';
import { overlongCosts, trainedRewards, type OverlongRules } from '../../../core/plan/shaped-rewards.ts';
import { hasNoVariance, mean, meanMetrics } from '../../../core/numbers/statistics.ts';
import type { AttemptRecord, Judged, Rollouts } from './trajectories.ts';

/** The agent's own reward; an attempt that failed has none. */
export function judgeByAgent({ header, attempts }: Rollouts, rolloutsSha256: string, rules: OverlongRules): Judged {
  return {
    schema: 1,
    inputsSha256: header.inputsSha256,
    rolloutsSha256,
    judge: 'agent',
    rewards: attempts.map(({ reward }) => reward),
    ...(attempts.some(({ roleRewards }) => roleRewards !== undefined) && {
      roleRewards: attempts.map(({ roleRewards = null }) => roleRewards),
    }),
    ...judgeTurns(earnedByTurns(attempts)),
    ...overlongCosts(rules, attempts),
    explanations: attempts.map(() => null),
    metrics: {},
  };
}

/** Rewards of turns by attempt and call, as the agent gave them. */
export function earnedByTurns(attempts: readonly AttemptRecord[]): number[][] {
  return attempts.map(({ calls }) => calls.map(({ reward = 0 }) => reward));
}

/** Turn rewards by attempt and call; nothing is written if no turn has one. */
export function judgeTurns(earned: readonly (readonly number[])[], weight = 1): Pick<Judged, 'turnRewards'> {
  const turns = earned.map((calls) => calls.map((reward) => weight * reward));
  const hasAny = (calls: readonly number[]): boolean => calls.some((reward) => reward !== 0);
  return turns.some(hasAny) ? { turnRewards: turns.map((calls) => (hasAny(calls) ? calls : null)) } : {};
}

/** Parts of a group's plan that its summary depends on. */
export type Summarised = Pick<RolloutInput, 'step' | 'group' | 'scenario' | 'minimumGroupSize' | 'roles'> & RewardRules;

/** A group that was played and that its judge has not seen yet: rewards are the agent's own. */
export function summariseUnjudged(input: Summarised, rollouts: Rollouts, rolloutsSha256: string): GroupResult {
  const own = summariseGroup(input, rollouts, judgeByAgent(rollouts, rolloutsSha256, input), rolloutsSha256);
  return { ...own, judgedSha256: null, use: 'unjudged' };
}

export function summariseGroup(
  input: Summarised,
  rollouts: Rollouts,
  judged: Judged,
  judgedSha256: string,
): GroupResult {
  const { attempts } = rollouts;
  const rewards = judged.rewards.filter((reward) => reward !== null);
  const data = attempts.filter((_, index) => judged.rewards[index] !== null);
  const given = (judged.givenMetrics ?? []).filter((_, index) => judged.rewards[index] !== null);
  return {
    step: input.step,
    group: input.group,
    scenario: input.scenario,
    rolloutsSha256: judged.rolloutsSha256,
    judgedSha256,
    attempts: attempts.length,
    failed: attempts.length - data.length,
    truncated: attempts.filter(({ truncated }) => truncated).length,
    calls: attempts.reduce((sum, { calls }) => sum + calls.length, 0),
    sampledTokens: countTokens(attempts),
    rewards,
    ...rewardsByRole(judged),
    metrics: {
      ...meanMetrics(data.map(({ metrics }, index) => ({ ...metrics, ...given[index] }))),
      ...meanScores(judged, data),
    },
    use: decideUse(input, rollouts, judged),
  };
}

/**
 * With a judge, the agent's own reward is a metric, and so are the judge's score and `rewardGroup`'s named rewards,
 * before weights. Where a script is the judge, it has changed the rewards of roles.
 */
function meanScores(
  { judge, scores, namedRewards, roleRewards }: Judged,
  data: readonly AttemptRecord[],
): Record<string, number> {
  if (judge === 'agent') return {};
  const named = (namedRewards ?? roleRewards ?? []).filter((rewards) => rewards !== null).map(toRewardMetrics);
  const means = {
    // With names, it is among them already.
    agentReward: namedRewards ? null : mean(data.map(({ reward }) => reward).filter((reward) => reward !== null)),
    [judge === REVIEW ? 'reviewScore' : 'rulerScore']: mean((scores ?? []).filter((score) => score !== null)),
  };
  const known = Object.entries(means).filter((entry): entry is [string, number] => entry[1] !== null);
  return { ...Object.fromEntries(known), ...meanMetrics(named) };
}

/** Rewards of the attempts that are data; nothing without roles. */
function rewardsByRole({ roleRewards }: Judged): Pick<GroupResult, 'roleRewards'> {
  const data = (roleRewards ?? []).filter((rewards) => rewards !== null);
  const roles = [...new Set(data.flatMap((rewards) => Object.keys(rewards)))].toSorted();
  if (roles.length === 0) return {};
  return { roleRewards: Object.fromEntries(roles.map((role) => [role, data.map((rewards) => rewards[role] ?? null)])) };
}

function decideUse(plan: Summarised, rollouts: Rollouts, judged: Judged): GroupResult['use'] {
  const { minimumGroupSize, truncated, baseline, roles } = plan;
  const data = rollouts.attempts.filter((_, index) => judged.rewards[index] !== null);
  if (data.length < minimumGroupSize) return 'too-few-attempts';
  if (countTokens(data, roles) === 0) return 'no-sampled-tokens';
  if (
    truncated === 'mask' &&
    countTokens(
      data.filter((attempt) => !attempt.truncated),
      roles,
    ) === 0
  )
    return 'all-truncated';
  // A running mean tells a reward from earlier ones, where those of a group are all the same.
  if (baseline === 'rae') return 'trained';
  return verdictsOf(roles, judged).every((verdict) => isEven(plan, rollouts, verdict)) ? 'no-variance' : 'trained';
}

/** The rewards that are compared: those of each trained role, or of the attempts. */
function verdictsOf(roles: Summarised['roles'], judged: Judged): Judged[] {
  if (roles === undefined) return [judged];
  const ofRole = (role: string) => (judged.roleRewards ?? []).map((rewards) => rewards?.[role] ?? null);
  return Object.keys(roles).map((role) => ({ ...judged, rewards: ofRole(role) }));
}

function isEven(plan: Summarised, { attempts }: Rollouts, judged: Judged): boolean {
  return hasNoVariance(trainedRewards(plan, attempts, judged).filter((reward) => reward !== null));
}

/** With roles, tokens of the trained ones. */
function countTokens(attempts: readonly AttemptRecord[], roles?: Summarised['roles']): number {
  const calls = attempts.flatMap((attempt) => attempt.calls);
  const own = roles === undefined ? calls : calls.filter(({ role = '' }) => Object.hasOwn(roles, role));
  return own.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
}
