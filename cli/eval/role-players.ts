/** Players of an agent's roles outside of a run: those of a checkpoint's policies, by their names. */
import { adapterOf } from '../../core/policy-name.ts';
import { seatedPolicy } from '../../core/roles.ts';
import type { Agent } from '../../play/agent.ts';
import { playersOutside, type RolePlayers } from '../../play/roles/role-definition.ts';
import type { Player } from './players.ts';

/** Empty where one policy plays every role: without roles, or if it was named alone, as `RUN@STEP:b` or a base model. */
export function rolePlayersOf(
  { roles }: Pick<Agent, 'roles'>,
  { checkpoint: target, model, adapterSha256 }: Player,
): { players?: RolePlayers } {
  if (roles === undefined || target === null || adapterSha256 !== target.checkpoint.adapterSha256) return {};
  const { checkpoint } = target;
  const playerOf = (policy: string) =>
    adapterOf(checkpoint, policy) === undefined ? { model, adapterSha256 } : seatedPolicy({ checkpoint, policy });
  return { players: playersOutside(roles, playerOf) };
}
