/** Players of the roles of an agent, from a plan: which policy of which checkpoint plays each. */
import type { EvaluateInput, RolloutInput, Seats } from '../../core/contract.ts';
import { seatedPolicy } from '../../core/roles.ts';
import type { RolePlayers } from './role-definition.ts';

type Planned = Pick<RolloutInput, 'policy' | 'roles' | 'seats'>;

/** Null without roles. */
export function playersOf({ policy, roles, seats = {} }: Planned): RolePlayers | null {
  if (roles === undefined) return null;
  const trained = Object.entries(roles).map(([role, name]) => [role, { checkpoint: policy, policy: name }] as const);
  return { trained: roles, seated: toPolicies({ ...Object.fromEntries(trained), ...seats }) };
}

/** Players of the attempts at one held-out scenario: one without roles that compete, else one for each trained role. */
export function evaluatedPlayers(input: EvaluateInput): (RolePlayers | null)[] {
  const { policy, roles, seats, start } = input;
  if (roles === undefined || start === undefined) return [playersOf(input)];
  const ofStart = Object.entries(roles).map(([role, name]) => [role, { checkpoint: start, policy: name }] as const);
  return Object.entries(roles).map(([role, name]) => {
    const others = Object.fromEntries(ofStart.filter(([other]) => other !== role));
    return playersOf({ policy, roles: { [role]: name }, seats: { ...seats, ...others } });
  });
}

function toPolicies(seats: Seats): RolePlayers['seated'] {
  return Object.fromEntries(Object.entries(seats).map(([role, seat]) => [role, seatedPolicy(seat)]));
}
