/** Players of an agent's roles: `roles: { white: policy(), user: frozen('openai/gpt-5-mini'), past: league({ every: 10 }) }`. */
import { badConfig } from '../../core/contract/failures.ts';
import { MAIN_POLICY, ROLE_NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import type { FrozenPlayer, LeaguePlayer, PolicyPlayer } from '../../play/roles/role-definition.ts';
import { checkCount, checkOptions } from '../options/check-options.ts';

export interface LeagueOptions {
  /** A checkpoint joins after so many steps. */
  every: number;
  /** The newest so many stay. */
  keep: number;
  /** Policy whose checkpoints play; by default the run's own. */
  of?: string;
}

const MOST_KEPT = 64;

/** A role that the run trains. Roles with one name share a policy; without a name it is the run's own. */
export function policy(name: string = MAIN_POLICY): PolicyPlayer {
  return Object.freeze({ kind: 'policy', policy: checkPolicyName('policy', name) });
}

/** A role that is never trained: a hosted model as `provider/model`, or a checkpoint of the store as `RUN@STEP`. */
export function frozen(player: string): FrozenPlayer {
  if (typeof player !== 'string' || player === '')
    throw badConfig(
      `frozen must be given a hosted model or a checkpoint, got ${JSON.stringify(player)}; pass openai/gpt-5-mini or RUN@STEP`,
    );
  return Object.freeze({ kind: 'frozen', player });
}

/** A role that older checkpoints of this run play. Those that the trained roles rarely beat are drawn more often. */
export function league(options: LeagueOptions): LeaguePlayer {
  const { every, keep, of = MAIN_POLICY } = checkOptions('league', options);
  checkCount('every of league', every, { least: 1, example: 10 });
  checkCount('keep of league', keep, { least: 1, example: 5 });
  if (keep > MOST_KEPT) throw badConfig(`keep of league must be at most ${MOST_KEPT}, got ${keep}; pass 5`);
  return Object.freeze({ kind: 'league', of: checkPolicyName('of of league', of), every, keep });
}

function checkPolicyName(what: string, name: unknown): string {
  if (typeof name === 'string' && ROLE_NAME_PATTERN.test(name)) return name;
  throw badConfig(
    `${what} must be named by lower case letters, digits, _ and - (${ROLE_NAME_PATTERN.source}), got ${JSON.stringify(name)}; rename it`,
  );
}
