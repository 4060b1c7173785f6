/** Plans what a run asks of the rewards that its groups are given from outside. Pure, as all plans. */
import type {
  AwaitedRewards,
  GroupResult,
  JudgeGivenInput,
  JudgeGivenResult,
  RolloutInput,
  RunConfig,
} from '../contract/contract.ts';
import { EXTERNAL } from '../rules/external-rewards.ts';
import { rewardRules } from './step.ts';

/** Time from which a group is decided with what it has; null: it waits for every reward. */
export function deadlineOf({ external }: Pick<RunConfig, 'external'>, playedAt: number | undefined): number | null {
  return external?.timeoutMs === undefined || playedAt === undefined ? null : playedAt + external.timeoutMs;
}

/** A group that was played and whose rewards are awaited, as its plan names it. */
export type PlayedPlace = Pick<RolloutInput, 'branch' | 'step' | 'group' | 'scenario' | 'inputsSha256'>;

/** A group's name within a lineage, whose steps have one branch each. */
export function groupName({ step, group }: { step: number; group: number }): string {
  return `${step}.${group}`;
}

export type Over = NonNullable<JudgeGivenInput['groups'][number]['over']>;

/** `over`: why a group is decided with what it has; null if it is not. */
export function planGivenJudging(
  config: RunConfig,
  branch: number,
  groups: readonly PlayedPlace[],
  over: (group: PlayedPlace) => Over | null,
): JudgeGivenInput {
  const { run, judge, external = {}, minimumGroupSize, train } = config;
  const asked = groups.map((each) => {
    const { step, group, scenario, inputsSha256 } = each;
    const reason = over(each);
    const elsewhere = each.branch === branch ? {} : { branch: each.branch };
    return { step, ...elsewhere, group, scenario, inputsSha256, ...(reason && { over: reason }) };
  });
  const rules = { minimumGroupSize, ...rewardRules(train) };
  return { run, branch, ...rules, judge: judge ?? EXTERNAL, external, groups: asked };
}

/** Rewards that a step still waits for, for display. `playedAt`: times by name of the group. */
export function summariseAwaited(
  config: RunConfig,
  step: number,
  waiting: JudgeGivenResult['waiting'],
  decided: readonly GroupResult[],
  playedAt: ReadonlyMap<string, number>,
): Omit<AwaitedRewards, 'complete' | 'needed'> {
  const times = waiting.map((group) => playedAt.get(groupName(group)) ?? 0);
  const deadlines = times.map((time) => deadlineOf(config, time)).filter((time) => time !== null);
  const rewarded = decided.reduce((total, { rewards }) => total + rewards.length, 0);
  return {
    step,
    missing: waiting.reduce((total, { missing }) => total + missing, 0),
    attempts: waiting.reduce((total, { attempts }) => total + attempts, rewarded),
    waiting: waiting.length,
    groups: waiting.length + decided.length,
    since: new Date(Math.min(...times)).toISOString(),
    nextDeadline: deadlines.length === 0 ? null : new Date(Math.min(...deadlines)).toISOString(),
  };
}
