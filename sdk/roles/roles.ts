/** Players of an agent's roles: `roles: { white: policy(), user: frozen('openai/gpt-5-mini'), past: league({ every: 10 }) }`. */
import { badConfig, showValue } from '../../core/contract/failures.ts';
import { MAIN_POLICY, ROLE_NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import type { FrozenPlayer, LeaguePlayer, PolicyPlayer } from '../../play/roles/role-definition.ts';
import { must, takes, whole } from '../options/options.ts';

export interface LeagueOptions {
  /** A checkpoint joins after so many steps. */
  every: number;
  /** The newest so many stay. */
  keep: number;
  /** Policy whose checkpoints play; by default the run's own. */
  of?: string;
}

const isPolicyName = (value: unknown): boolean => typeof value === 'string' && ROLE_NAME_PATTERN.test(value);
const POLICY_NAME = `lower case letters, digits, _ and - (${ROLE_NAME_PATTERN.source})`;

const checkOptions = takes<LeagueOptions>('league', {
  every: whole(1, 'pass 10'),
  keep: whole(1, 'pass 5', 64),
  of: must(POLICY_NAME, isPolicyName, 'rename it').optional(),
});

/** A role that the run trains. Roles with one name share a policy; without a name it is the run's own. */
export function policy(name: string = MAIN_POLICY): PolicyPlayer {
  if (isPolicyName(name)) return Object.freeze({ kind: 'policy', policy: name });
  throw badConfig(`policy must be named by ${POLICY_NAME}, got ${showValue(name)}; rename it`);
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
  const { every, keep, of = MAIN_POLICY } = checkOptions(options);
  return Object.freeze({ kind: 'league', of, every, keep });
}
