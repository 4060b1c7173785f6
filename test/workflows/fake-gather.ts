/** Recorded conversations as groups, with numbers that depend on inputs alone. */
import type { GatherInput, GroupResult } from '../../core/contract/contract.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { planGathered, type GatheredGroup } from '../../core/plan/production.ts';

export function gatherGroups(input: GatherInput): GroupResult[] {
  return planGathered(input).map(gatherGroup);
}

function gatherGroup({ step, group, scenario, inputsSha256 }: GatheredGroup): GroupResult {
  const [rolloutsSha256, judgedSha256] = ['rollouts', 'judged'].map((part) => hashOf([inputsSha256, part]));
  const counts = { attempts: 1, failed: 0, truncated: 0, calls: 1, sampledTokens: 10, rewards: [scenario % 2] };
  return {
    step,
    group,
    scenario,
    rolloutsSha256: rolloutsSha256!,
    judgedSha256: judgedSha256!,
    ...counts,
    metrics: {},
    use: 'trained',
  };
}
