/** Roles of an agent's file as a run records them: frozen checkpoints found, and what opposes them refused. */
import { badConfig } from '../../core/contract/failures.ts';
import type { Role, RunConfig } from '../../core/contract/contract.ts';
import type { RunOptions } from '../../core/rules/run-defaults.ts';
import { MAIN_POLICY } from '../../core/contract/wire-constants.ts';
import type { Agent } from '../../play/agent.ts';
import { parseHostedModel } from '../../play/connections/providers.ts';
import { isCheckpointPlayer, type FrozenPlayer, type RoleDefinition } from '../../play/roles/role-definition.ts';
import { findTrainedPolicy } from '../../store/records/runs/find-policy.ts';
import type { Store } from '../../store/store.ts';
import { readTrainedName } from '../command-line/values.ts';

interface Sources {
  readonly store: Store;
  readonly env: NodeJS.ProcessEnv;
}

type RoleOptions = Pick<RunOptions, 'roles' | 'competing'>;

/** Empty for an agent without roles. */
export async function roleOptions({ roles, competing }: Agent, sources: Sources): Promise<RoleOptions> {
  if (roles === undefined) return {};
  const read = Object.entries(roles).map(async ([name, role]) => [name, await readRole(name, role, sources)] as const);
  return { roles: Object.fromEntries(await Promise.all(read)), ...(competing === true ? { competing } : {}) };
}

function readRole(name: string, role: RoleDefinition, sources: Sources): Role | Promise<Role> {
  if (role.kind === 'policy') return { kind: 'policy', policy: role.policy };
  if (role.kind === 'league') return { kind: 'league', policy: role.of, every: role.every, keep: role.keep };
  return isCheckpointPlayer(role) ? readFrozen(name, role, sources) : readHosted(name, role, sources);
}

async function readFrozen(name: string, { player }: FrozenPlayer, { store }: Sources): Promise<Role> {
  const wanted = readTrainedName(player);
  if (typeof wanted.step !== 'number')
    throw badConfig(
      `the role ${name} must be frozen at a step (a run that is started again must play against the same one), got ${player}; name it as RUN@STEP`,
    );
  const { checkpoint } = await findTrainedPolicy(store, wanted);
  return { kind: 'checkpoint', checkpoint, policy: wanted.policy ?? MAIN_POLICY };
}

function readHosted(name: string, { player }: FrozenPlayer, { env }: Sources): Role {
  if (parseHostedModel(player, env) !== null) return { kind: 'hosted', model: player };
  throw badConfig(
    `the role ${name} must be frozen as a hosted model (provider/model) or a checkpoint (RUN@STEP), got ${player}; correct it in the agent's file`,
  );
}

/** Compares base models once the run's own is known: the engine serves one. */
export async function checkFrozenBases({ roles = {}, baseModel }: RunConfig, store: Store): Promise<void> {
  for (const [name, role] of Object.entries(roles)) {
    if (role.kind !== 'checkpoint') continue;
    const { config, name: checkpoint } = await findTrainedPolicy(store, role.checkpoint);
    if (config.baseModel !== baseModel)
      throw badConfig(
        `the role ${name} must be played by a checkpoint of ${baseModel}, got ${checkpoint} of ${config.baseModel}; name another checkpoint`,
      );
    if (config.train.lora === null)
      throw badConfig(
        `the role ${name} must be played by an adapter, and ${checkpoint} has all weights; name another checkpoint`,
      );
  }
}
