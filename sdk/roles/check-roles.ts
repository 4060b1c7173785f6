/** Checks the roles of an agent or of a script's model, which a JavaScript caller may give any value. */
import { MAIN_POLICY, ROLE_NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import { showValue } from '../../core/contract/failures.ts';
import { PROGRAM } from '../../play/programs/program.ts';
import type { RoleDefinition, RoleDefinitions } from '../../play/roles/role-definition.ts';

const MAX_ROLES = 16;
const KINDS: readonly unknown[] = ['policy', 'frozen', 'league'];

/** Null without roles, and if they are right. */
export function findAgentRolesProblem(agent: string, definition: object): string | null {
  const { roles } = definition as Record<string, unknown>;
  return (
    findRolesProblem(`the agent ${agent}`, definition) ??
    (roles === undefined ? null : findOthersProblem(agent, definition))
  );
}

/** Checks those of a script's model, which trains each of them: other players are models of their own. */
export function findModelRolesProblem(model: string, options: object): string | null {
  const { roles } = options as Record<string, unknown>;
  const problem = findRolesProblem(`the model ${model}`, options);
  if (problem !== null || roles === undefined) return problem;
  const other = Object.entries(roles as RoleDefinitions).find(([, { kind }]) => kind !== 'policy');
  if (other === undefined) return null;
  return `the role ${other[0]} of the model ${model} must be policy(), got ${showValue(other[1])}; let a new Model({ … }) of the script play it`;
}

/** `owner`: the agent or the model, as messages name it. */
function findRolesProblem(owner: string, definition: object): string | null {
  const { roles, competing } = definition as Record<string, unknown>;
  if (roles === undefined)
    return competing === undefined
      ? null
      : `competing of ${owner} has no effect without roles; add roles: { … }, or remove it`;
  if (competing !== undefined && typeof competing !== 'boolean')
    return `competing of ${owner} must be true or false, got ${showValue(competing)}; pass true`;
  if (typeof roles !== 'object' || roles === null || Array.isArray(roles))
    return `roles of ${owner} must be an object, got ${showValue(roles)}; pass { white: policy(), … }`;
  return findEntriesProblem(owner, Object.entries(roles));
}

function findEntriesProblem(owner: string, entries: readonly (readonly [string, unknown])[]): string | null {
  if (entries.length === 0 || entries.length > MAX_ROLES)
    return `${owner} must have 1 to ${MAX_ROLES} roles, got ${entries.length}; name its players in roles`;
  const misnamed = entries.find(([role]) => !ROLE_NAME_PATTERN.test(role));
  if (misnamed !== undefined)
    return `a role of ${owner} must be named by lower case letters, digits, _ and - (${ROLE_NAME_PATTERN.source}), got ${showValue(misnamed[0])}; rename it`;
  const wrong = entries.find(([, role]) => !isRole(role));
  if (wrong !== undefined)
    return `the role ${wrong[0]} of ${owner} must be policy(), frozen(…) or league({ … }), got ${showValue(wrong[1])}; pass one of these`;
  return findPoliciesProblem(owner, entries as readonly (readonly [string, RoleDefinition])[]);
}

function findPoliciesProblem(owner: string, roles: readonly (readonly [string, RoleDefinition])[]): string | null {
  const trained = new Set(roles.flatMap(([, role]) => (role.kind === 'policy' ? [role.policy] : [])));
  if (!trained.has(MAIN_POLICY))
    return `one role of ${owner} must be policy(), the run's own policy, got none; name it without a name of its own`;
  const stranger = roles.find(([, role]) => role.kind === 'league' && !trained.has(role.of));
  if (stranger !== undefined)
    return `the league of the role ${stranger[0]} must be of a policy that a role trains (${[...trained].join(', ')}); correct its of`;
  const unknown = roles.find(([, role]) => role.kind === 'frozen' && !/[@/]/.test(role.player));
  if (unknown === undefined) return null;
  return `the role ${unknown[0]} of ${owner} must be frozen as provider/model or RUN@STEP, got ${showValue(unknown[1])}; pass for example frozen('openai/gpt-5-mini')`;
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
