/** What a group's two files say, in numbers: a pure function of their contents. */
import type { GroupResult, RolloutInput } from '../core/contract.ts';
import { hasNoVariance, meanMetrics } from '../core/statistics.ts';
import type { AttemptRecord, Judged, Rollouts } from './trajectories.ts';

/** The agent's own reward; an attempt that failed has none. */
export function judgeByAgent({ header, attempts }: Rollouts, rolloutsSha256: string): Judged {
  return {
    schema: 1,
    inputsSha256: header.inputsSha256,
    rolloutsSha256,
    judge: 'agent',
    rewards: attempts.map(({ reward }) => reward),
    explanations: attempts.map(() => null),
    metrics: {},
  };
}

/** What of a group's plan its numbers depend on. */
type Summarised = Pick<RolloutInput, 'step' | 'group' | 'scenario' | 'minimumGroupSize'>;

export function summariseGroup(
  input: Summarised,
  { attempts }: Rollouts,
  judged: Judged,
  judgedSha256: string,
): GroupResult {
  const rewards = judged.rewards.filter((reward) => reward !== null);
  const data = attempts.filter((_, index) => judged.rewards[index] !== null);
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
    metrics: meanMetrics(data.map(({ metrics }) => metrics)),
    use: decideUse(input, data, rewards),
  };
}

function decideUse(input: Summarised, data: readonly AttemptRecord[], rewards: readonly number[]): GroupResult['use'] {
  if (rewards.length < input.minimumGroupSize) return 'too-few-attempts';
  if (countTokens(data) === 0) return 'no-sampled-tokens';
  return hasNoVariance(rewards) ? 'no-variance' : 'trained';
}

function countTokens(attempts: readonly AttemptRecord[]): number {
  return attempts.flatMap(({ calls }) => calls).reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
}
