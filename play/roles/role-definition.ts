/** Roles as an agent's file defines them, and the players of an attempt's roles. */
import type { TrainedRoles, EvaluateInput, RolloutInput, Seats } from '../../core/contract/contract.ts';
import { parseTrainedName } from '../../core/names/policy-name.ts';
import type { Metrics } from '../../core/numbers/statistics.ts';
import { MAIN_POLICY } from '../../core/contract/wire-constants.ts';
import type { ExpectedPolicy } from '../recorder/answer.ts';
import { seatedPolicy } from '../../core/rules/roles.ts';

/** Trained: a policy of the run. */
export interface PolicyPlayer {
  readonly kind: 'policy';
  readonly policy: string;
}

/** Never trained: a hosted model as `provider/model`, or a checkpoint as `RUN@STEP`. */
export interface FrozenPlayer {
  readonly kind: 'frozen';
  readonly player: string;
}

/** Played by older checkpoints of the run's policy `of`: one joins every `every` steps, and the newest `keep` stay. */
export interface LeaguePlayer {
  readonly kind: 'league';
  readonly of: string;
  readonly every: number;
  readonly keep: number;
}

export type RoleDefinition = PolicyPlayer | FrozenPlayer | LeaguePlayer;
export type RoleDefinitions = Readonly<Record<string, RoleDefinition>>;

/** A reward for each role that is trained, or that a league plays; null for one that did not play in this attempt. */
export interface RoleResult<Rewarded extends string = string> {
  roleRewards: Readonly<Record<Rewarded, number | null>>;
  metrics?: Readonly<Metrics>;
}

/** Players of one attempt. Roles without one are played by hosted models. */
export interface RolePlayers {
  /** The policy that each role trains; in an evaluation, that each evaluated role shows. */
  readonly trained: TrainedRoles;
  /** Roles that the engine plays, trained or not. */
  readonly seated: Readonly<Record<string, ExpectedPolicy>>;
}

/** Whether a frozen role names a checkpoint of the store; otherwise it names a hosted model. */
export function isCheckpointPlayer({ player }: FrozenPlayer): boolean {
  return player.includes('@') && parseTrainedName(player) !== null;
}

/** Roles that a run's engine plays with older weights. */
export function isPlayedByCheckpoint(role: RoleDefinition): boolean {
  return role.kind === 'league' || (role.kind === 'frozen' && isCheckpointPlayer(role));
}

/** Players outside of a run: `playerOf` says who plays for a policy. Hosted models play their own roles. */
export function playersOutside(roles: RoleDefinitions, playerOf: (policy: string) => ExpectedPolicy): RolePlayers {
  const entries = Object.entries(roles);
  const seated = entries.filter(([, role]) => role.kind !== 'frozen' || isCheckpointPlayer(role));
  return {
    trained: Object.fromEntries(
      entries.flatMap(([name, role]) => (role.kind === 'policy' ? [[name, role.policy]] : [])),
    ),
    seated: Object.fromEntries(seated.map(([name, role]) => [name, playerOf(policyOf(role))])),
  };
}

function policyOf(role: RoleDefinition): string {
  if (role.kind === 'frozen') return MAIN_POLICY;
  return role.kind === 'policy' ? role.policy : role.of;
}

/** Roles whose rewards a rollout must return: trained ones, and those that are scored against them. */
export function isRewarded({ kind }: RoleDefinition): boolean {
  return kind !== 'frozen';
}

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
