/** A group that the agent's own function rewards, in the place of a judge: its verdict is recorded as a judge's is. */
import type { RolloutInput } from '../core/contract/contract.ts';
import { badConfig } from '../core/contract/failures.ts';
import { REWARD_GROUP } from '../core/rules/named-rewards.ts';
import type { Agent } from '../play/agent.ts';
import { rewardGroup, type GroupReward } from '../play/reward-group.ts';
import { earnedByTurns, judgeTurns } from '../store/records/groups/group-result.ts';
import type { AttemptRecord, Judged } from '../store/records/groups/trajectories.ts';
import type { Scope } from './activity.ts';
import { requireAgent, type PlayDependencies } from './dependencies.ts';
import { createScenarioReader } from './scenario-reader.ts';

/** The decision of a judge; its subject is added where it is published. */
export type GroupVerdict = Omit<Judged, 'schema' | 'inputsSha256' | 'rolloutsSha256' | 'overlongCosts'>;

export type JudgePlayed = (
  input: RolloutInput,
  attempts: readonly AttemptRecord[],
  scope: Scope,
) => Promise<GroupVerdict>;

export function createGroupReward(dependencies: PlayDependencies): JudgePlayed {
  const readScenario = createScenarioReader(dependencies.store);
  return async (input, attempts, scope) => {
    const agent = requireRewardGroup(dependencies, input);
    const { step, group } = input;
    const { signal, attempt: tries } = scope;
    scope.showDetail(() => ({ step, part: String(group), judge: REWARD_GROUP }));
    const data = attempts.filter(({ status }) => status === 'ok');
    const scenario = await readScenario(input.scenarios, input.scenario);
    const given = data.length === 0 ? [] : await rewardGroup(agent, { scenario, attempts: data, signal, tries });
    return toVerdict(attempts, new Map(data.map(({ attempt }, index) => [attempt, given[index]!])));
  };
}

function requireRewardGroup({ agents }: PlayDependencies, { run, agent: name }: RolloutInput): Agent {
  const { agent } = requireAgent(agents, name);
  if (agent.rewardGroup !== undefined) return agent;
  const rule = `the run ${run} is rewarded by rewardGroup, which its agent ${name} no longer has`;
  throw badConfig(`${rule}; restore it, or start another run`);
}

function toVerdict(attempts: readonly AttemptRecord[], rewards: ReadonlyMap<number, GroupReward>): GroupVerdict {
  const given = attempts.map(({ attempt }) => rewards.get(attempt) ?? null);
  const hasNames = given.some((each) => each !== null && each.named !== null);
  return {
    judge: REWARD_GROUP,
    rewards: given.map((each) => each?.reward ?? null),
    ...judgeTurns(earnedByTurns(attempts)),
    ...(hasNames ? { namedRewards: given.map((each) => each?.named ?? null) } : {}),
    explanations: attempts.map(() => null),
    metrics: {},
  };
}
