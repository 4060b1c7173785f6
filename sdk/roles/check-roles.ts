/** Checks the roles of an agent, which a JavaScript caller may give any value. */
import { MAIN_POLICY, ROLE_NAME_PATTERN } from '../../core/wire-constants.ts';
import { PROGRAM } from '../../play/programs/program.ts';
import type { RoleDefinition } from '../../play/roles/role-definition.ts';
import { showOption } from '../options/show-option.ts';

const MAX_ROLES = 16;
const KINDS: readonly unknown[] = ['policy', 'frozen', 'league'];

/** Null without roles, and if they are right. */
export function findRolesProblem(agent: string, definition: object): string | null {
  const { roles, competing } = definition as Record<string, unknown>;
  if (roles === undefined)
    return competing === undefined
      ? null
      : `competing of the agent ${agent} has no effect without roles; add roles: { … }, or remove it`;
  if (competing !== undefined && typeof competing !== 'boolean')
    return `competing of the agent ${agent} must be true or false, got ${showOption(competing)}; pass true`;
  if (typeof roles !== 'object' || roles === null || Array.isArray(roles))
    return `roles of the agent ${agent} must be an object, got ${showOption(roles)}; pass { white: policy(), … }`;
  return findEntriesProblem(agent, Object.entries(roles)) ?? findOthersProblem(agent, definition);
}

function findEntriesProblem(agent: string, entries: readonly (readonly [string, unknown])[]): string | null {
  if (entries.length === 0 || entries.length > MAX_ROLES)
    return `the agent ${agent} must have 1 to ${MAX_ROLES} roles, got ${entries.length}; name its players in roles`;
  const misnamed = entries.find(([role]) => !ROLE_NAME_PATTERN.test(role));
  if (misnamed !== undefined)
    return `a role of the agent ${agent} must be named by lower case letters, digits, _ and - (${ROLE_NAME_PATTERN.source}), got ${showOption(misnamed[0])}; rename it`;
  const wrong = entries.find(([, role]) => !isRole(role));
  if (wrong !== undefined)
    return `the role ${wrong[0]} of the agent ${agent} must be policy(), frozen(…) or league({ … }), got ${showOption(wrong[1])}; pass one of these`;
  return findPoliciesProblem(agent, entries as readonly (readonly [string, RoleDefinition])[]);
}

function findPoliciesProblem(agent: string, roles: readonly (readonly [string, RoleDefinition])[]): string | null {
  const trained = new Set(roles.flatMap(([, role]) => (role.kind === 'policy' ? [role.policy] : [])));
  if (!trained.has(MAIN_POLICY))
    return `one role of the agent ${agent} must be policy(), the run's own policy, got none; name it without a name of its own`;
  const stranger = roles.find(([, role]) => role.kind === 'league' && !trained.has(role.of));
  if (stranger !== undefined)
    return `the league of the role ${stranger[0]} must be of a policy that a role trains (${[...trained].join(', ')}); correct its of`;
  const unknown = roles.find(([, role]) => role.kind === 'frozen' && !/[@/]/.test(role.player));
  if (unknown === undefined) return null;
  return `the role ${unknown[0]} of the agent ${agent} must be frozen as provider/model or RUN@STEP, got ${showOption(unknown[1])}; pass for example frozen('openai/gpt-5-mini')`;
}

/** Options that speak of the one policy of an agent without roles. */
function findOthersProblem(agent: string, definition: object): string | null {
  const { reward, rewards, rewardGroup, captureModel, rollout } = definition as Record<string, unknown>;
  const [other] = Object.entries({ reward, rewards, rewardGroup }).find(([, value]) => value !== undefined) ?? [];
  if (other !== undefined)
    return `the agent ${agent} has roles, whose rewards its rollout returns: ${other} has no effect; remove it, and return roleRewards`;
  if (captureModel !== undefined)
    return `captureModel has no effect with roles: no role would be called; remove it from the agent ${agent}`;
  if (typeof rollout === 'function' && PROGRAM in rollout)
    return `a program cannot play the roles of the agent ${agent}; write a rollout that calls roles.NAME`;
  return null;
}

function isRole(role: unknown): role is RoleDefinition {
  return typeof role === 'object' && role !== null && KINDS.includes((role as Partial<RoleDefinition>).kind);
}
