/** `external({ timeoutMs })`: the reward of an agent whose attempts are rewarded later, by people or other systems. */
import { badConfig, showValue } from '../../core/contract/failures.ts';
import { isReward, REWARD_RULE } from '../../core/rules/given-values.ts';
import { EXTERNAL_REWARD, type External } from '../../play/external.ts';
import { checkOptions } from '../options/check-options.ts';

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

export function external<const Name extends string = never>(options: ExternalOptions<Name> = {}): External<Name> {
  const complaint = findWaitProblem('external', checkOptions('external', options));
  if (complaint !== null) throw badConfig(complaint);
  const { name = null, timeoutMs = null, onTimeout = 'drop', minimum = null } = options;
  return Object.freeze({ [EXTERNAL_REWARD]: true as const, name, timeoutMs, onTimeout, minimum });
}

/** The mistake in how long a run waits, and what then. A JavaScript caller may pass values of any type. */
export function findWaitProblem(of: string, options: object): string | null {
  const { timeoutMs, onTimeout, minimum } = options as Record<string, unknown>;
  const isTime = isCount(timeoutMs) && timeoutMs > 0 && timeoutMs <= MOST_TIMEOUT_MS;
  if (timeoutMs !== undefined && !isTime)
    return `timeoutMs of ${of} must be a whole number of milliseconds, at most two years, got ${showValue(timeoutMs)}; pass for example 7 * 86_400_000`;
  if (onTimeout !== undefined && onTimeout !== 'drop' && !isReward(onTimeout))
    return `onTimeout of ${of} must be 'drop' or ${REWARD_RULE}, got ${showValue(onTimeout)}; pass the reward of attempts that nobody rewarded`;
  if (minimum !== undefined && !isCount(minimum))
    return `minimum of ${of} must be a whole number of at least 0, got ${showValue(minimum)}; pass how many rewards a group needs`;
  const useless = Object.entries({ onTimeout, minimum }).find(([, value]) => value !== undefined);
  return timeoutMs === undefined && useless !== undefined
    ? `${useless[0]} of ${of} has no effect without timeoutMs, since the run then waits for every reward; add timeoutMs`
    : null;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
