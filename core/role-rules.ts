/** The rules that tie the roles of a run to its other settings. */
import type { RunConfig } from './contract.ts';
import { leagueRoles, otherPolicies, trainedRoles } from './roles.ts';

/** Settings of a run's steps that follow from its roles: rewards that oppose each other are compared with a running mean. */
export function roleTrainOptions({
  competing,
}: {
  readonly competing?: boolean | undefined;
}): Partial<Pick<RunConfig['train'], 'baseline'>> {
  return competing === true ? { baseline: 'rae' } : {};
}

/** Describes a contradiction; null if there is none. */
export function findRoleSettingsProblem(config: RunConfig): string | null {
  if (config.roles === undefined) return null;
  return findPoliciesProblem(config) ?? findLeagueProblem(config) ?? findSharedProblem(config);
}

function findPoliciesProblem(config: RunConfig): string | null {
  const [other] = otherPolicies(config);
  if (other === undefined) return null;
  if (config.train.lora === null)
    return `roles must share the policy main if all weights are trained (each other policy is an adapter), got ${other}; train with LoRA, or use policy() for every role`;
  if (config.supervised === undefined) return null;
  return `supervised steps train the policy main alone, and the roles train ${other} too; leave the warm start out, or use policy() for every role`;
}

function findLeagueProblem(config: RunConfig): string | null {
  const [league] = leagueRoles(config);
  if (league !== undefined && config.groupsAhead > 0)
    return `groupsAhead must be 0 with a league (its opponents are drawn by the newest scores), got ${config.groupsAhead} with the role ${league.name}; leave groupsAhead out`;
  if (league === undefined || config.maxStaleness === 0) return null;
  return `maxStaleness must be 0 with a league (its opponents are drawn by the newest scores), got ${config.maxStaleness} with the role ${league.name}; leave maxStaleness out`;
}

/** The rewards of competing roles sum to nothing: their mean says nothing of any of them. */
function findSharedProblem(config: RunConfig): string | null {
  if (config.competing !== true || config.train.baseline === 'rae') return null;
  const policies = Object.values(trainedRoles(config) ?? {});
  const shared = policies.find((policy, index) => policies.indexOf(policy) !== index);
  if (shared === undefined) return null;
  return `baseline must be rae where competing roles share a policy (one wins what the other loses, so a group's mean over both carries no information), got group for the policy ${shared}; leave baseline out, or give each role a policy of its own`;
}
