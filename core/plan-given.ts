/** Plans what a run asks of the rewards that its groups are given from outside. Pure, as all plans. */
import type {
  AwaitedRewards,
  GroupResult,
  JudgeGivenInput,
  JudgeGivenResult,
  RolloutInput,
  RunConfig,
} from './contract.ts';
import { EXTERNAL } from './external-rewards.ts';
import { rewardRules } from './plan-step.ts';

/** Time from which a group is decided with what it has; null: it waits for every reward. */
export function deadlineOf({ external }: Pick<RunConfig, 'external'>, playedAt: number | undefined): number | null {
  return external?.timeoutMs === undefined || playedAt === undefined ? null : playedAt + external.timeoutMs;
}

export type Over = NonNullable<JudgeGivenInput['groups'][number]['over']>;

/** `over`: why a group is decided with what it has; null if it is not. */
export function planGivenJudging(
  config: RunConfig,
  branch: number,
  groups: readonly RolloutInput[],
  over: (group: number) => Over | null,
): JudgeGivenInput {
  const { run, judge, external = {}, minimumGroupSize, train } = config;
  const asked = groups.map(({ step, group, scenario, inputsSha256 }) => {
    const reason = over(group);
    return { step, group, scenario, inputsSha256, ...(reason && { over: reason }) };
  });
  const rules = { minimumGroupSize, ...rewardRules(train) };
  return { run, branch, ...rules, judge: judge ?? EXTERNAL, external, groups: asked };
}

/** Rewards that a step still waits for, for display. `playedAt`: times by group. */
export function summariseAwaited(
  config: RunConfig,
  step: number,
  waiting: JudgeGivenResult['waiting'],
  decided: readonly GroupResult[],
  playedAt: ReadonlyMap<number, number>,
): AwaitedRewards {
  const times = waiting.map(({ group }) => playedAt.get(group) ?? 0);
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
