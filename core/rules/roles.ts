/** The roles of a run's agent: which policies they train, and by which policy of a checkpoint each is played. Pure. */
import type { Checkpoint, RunConfig, Seat, TrainedRoles } from '../contract/contract.ts';
import { badConfig } from '../contract/failures.ts';
import { adapterOf, policyName } from '../names/policy-name.ts';
import { MAIN_POLICY } from '../contract/wire-constants.ts';

type Roles = Pick<RunConfig, 'roles'>;

/** The policy that each trained role trains; undefined without roles. */
export function trainedRoles({ roles }: Roles): TrainedRoles | undefined {
  if (roles === undefined) return undefined;
  const entries = Object.entries(roles);
  return Object.fromEntries(entries.flatMap(([name, role]) => (role.kind === 'policy' ? [[name, role.policy]] : [])));
}

/** Names of the policies beside `main`, sorted. */
export function otherPolicies(config: Roles): string[] {
  const names = new Set(Object.values(trainedRoles(config) ?? {}));
  names.delete(MAIN_POLICY);
  return [...names].toSorted();
}

/** The most policies that a step, or an evaluation, of the run samples from. */
export function countPolicies(config: Pick<RunConfig, 'roles' | 'competing'>): number {
  const { roles = {}, competing = false } = config;
  const trained = 1 + otherPolicies(config).length;
  const frozen = new Set(
    Object.values(roles).flatMap((role) =>
      role.kind === 'checkpoint' ? [`${role.checkpoint.manifestSha256} ${role.policy}`] : [],
    ),
  );
  const leagues = leagueRoles(config);
  const opponents = leagues.reduce((sum, { keep }) => sum + keep, 0);
  // The first checkpoint plays the leagues' roles and, where roles compete, the trained ones.
  const first = competing ? trained : new Set(leagues.map(({ policy }) => policy)).size;
  return trained + frozen.size + Math.max(opponents, first);
}

/** Hash of the weights of one of a checkpoint's policies, which must have it. */
function requireAdapter(checkpoint: Checkpoint, policy: string): string {
  const adapter = adapterOf(checkpoint, policy);
  if (adapter !== undefined) return adapter;
  const known = [MAIN_POLICY, ...Object.keys(checkpoint.adapters ?? {})].join(', ');
  throw badConfig(
    `the policy ${policy} must be one of the checkpoint ${policyName(checkpoint)}, which has ${known}; name one of these`,
  );
}

/** A policy as the engine must answer for it. */
export interface SeatedPolicy {
  model: string;
  adapterSha256: string;
}

export function seatedPolicy({ checkpoint, policy }: Seat): SeatedPolicy {
  const { run, branch, step } = checkpoint;
  return { model: policyName({ run, branch, step, policy }), adapterSha256: requireAdapter(checkpoint, policy) };
}

/** Roles that a league plays, with its settings. */
export function leagueRoles({ roles = {} }: Pick<RunConfig, 'roles'>) {
  return Object.entries(roles).flatMap(([name, role]) => (role.kind === 'league' ? [{ name, ...role }] : []));
}

/** Settings of a run's steps that follow from its roles: rewards that oppose each other are compared with a running mean. */
export function roleTrainOptions({
  competing,
}: {
  readonly competing?: boolean | undefined;
}): Partial<Pick<RunConfig['train'], 'baseline'>> {
  return competing === true ? { baseline: 'rae' } : {};
}
