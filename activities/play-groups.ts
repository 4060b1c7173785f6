/**
 * `playGroups`: several groups of a large step, one after the other, each as `rollout` and `judgeGroup` have it. What is
 * published of them is not played again: a retry goes on with the group that its predecessor was at.
 */
import { PlayGroupsInput, type GroupResult, type JudgeGroupResult, type PlayGroupsResult } from '../core/contract.ts';
import { addSpendings } from '../core/judge-spending.ts';
import { withInputsHash } from '../core/plan-step.ts';
import { asActivity, type Scope } from './activity.ts';
import type { PlayDependencies } from './dependencies.ts';
import { createJudgeGroup } from './judge-group.ts';
import { createRollout } from './rollout.ts';

export function createPlayGroupsActivities(dependencies: PlayDependencies) {
  const rollout = createRollout(dependencies);
  const judgeGroup = createJudgeGroup(dependencies);

  async function playGroups({ groups, ...shared }: PlayGroupsInput, scope: Scope): Promise<PlayGroupsResult> {
    const played: GroupResult[] = [];
    const judged: JudgeGroupResult[] = [];
    const within = withGroups(scope, () => ({ done: played.length, of: groups.length }));
    for (const dealt of groups) {
      scope.signal.throwIfAborted();
      const group = withInputsHash({ ...shared, ...dealt });
      let result = await rollout(group, within);
      if (result.use === 'unjudged') {
        const verdict = await judgeGroup({ group }, within);
        judged.push(verdict);
        result = verdict.group;
      }
      played.push(result);
    }
    return {
      groups: played,
      spent: judged.length === 0 ? null : addSpendings(judged.map(({ spent }) => spent)),
      seconds: Math.max(0, ...judged.map(({ seconds }) => seconds)),
    };
  }

  return { playGroups: asActivity(dependencies, PlayGroupsInput, playGroups) };
}

/** Beside what a group tells of itself. */
function withGroups(scope: Scope, progress: () => { done: number; of: number }): Scope {
  return {
    ...scope,
    showDetail: (detail) => scope.showDetail(() => ({ ...(detail() as object | null), groups: progress() })),
  };
}
