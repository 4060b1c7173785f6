/** `external({ timeoutMs })`: the reward of an agent whose attempts are rewarded later, by people or other systems. */
import { isReward, REWARD_RULE } from '../../core/rules/given-values.ts';
import { EXTERNAL_REWARD, type External } from '../../play/external.ts';
import { anything, must, takes, whole } from '../options/options.ts';

export interface ExternalOptions<Name extends string = never> {
  /** One of the agent's `rewards`, which is then given from outside; the rollout returns the others. */
  readonly name?: Name;
  /** Milliseconds from when a group was played until it is decided with what it has been given; by default never. */
  readonly timeoutMs?: number;
  /** Attempts that have no reward by then: `drop` leaves them out (the default), a number is their reward. */
  readonly onTimeout?: 'drop' | number;
  /** Fewest given rewards with which a group is used by then; the run's `minimumGroupSize` by default. */
  readonly minimum?: number;
}

/** Two years: a longer time is a mistake in units. */
const MOST_TIMEOUT_MS = 2 * 366 * 86_400_000;

/** How long a run waits, and what then. */
export const WAIT = {
  timeoutMs: must(
    'a whole number of milliseconds, at most two years',
    (value) => Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= MOST_TIMEOUT_MS,
    'pass for example 7 * 86_400_000',
  ).optional(),
  onTimeout: must(
    `'drop' or ${REWARD_RULE}`,
    (value) => value === 'drop' || isReward(value),
    'pass the reward of attempts that nobody rewarded',
  ).optional(),
  minimum: whole(0, 'pass how many rewards a group needs').optional(),
};

const checkOptions = takes<ExternalOptions<string>>(
  'external',
  { name: anything.optional(), ...WAIT },
  { rules: [(options) => findUselessWait('external', options)] },
);

export function external<const Name extends string = never>(options: ExternalOptions<Name> = {}): External<Name> {
  const { name = null, timeoutMs = null, onTimeout = 'drop', minimum = null } = checkOptions(options);
  return Object.freeze({ [EXTERNAL_REWARD]: true as const, name, timeoutMs, onTimeout, minimum });
}

export function findUselessWait(of: string, { timeoutMs, onTimeout, minimum }: ExternalOptions<string>): string | null {
  const useless = Object.entries({ onTimeout, minimum }).find(([, value]) => value !== undefined);
  return timeoutMs === undefined && useless !== undefined
    ? `${useless[0]} of ${of} has no effect without timeoutMs, since the run then waits for every reward; add timeoutMs`
    : null;
}
