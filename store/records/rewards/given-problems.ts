/** The mistake in what somebody sent as a reward or a comparison; null if there is none. */
import { findMetricNameProblem, isReward, REWARD_RULE } from '../../../core/rules/given-values.ts';
import { isNamedReward } from '../../../core/rules/named-rewards.ts';
import { showValue } from '../../../core/contract/failures.ts';

/** A reward as somebody gives it. JSON from outside may hold anything. */
export interface GivenReward {
  /** `BRANCH.STEP.GROUP.ATTEMPT`. */
  readonly attempt: string;
  readonly reward: number;
  readonly metrics?: Readonly<Record<string, number>>;
  readonly by?: string | null;
  readonly note?: string | null;
  /** Idempotency key. */
  readonly key?: string | null;
}

export const MAX_BY = 200;
export const MAX_NOTE = 2000;
const MAX_KEY = 200;
const MAX_METRICS = 32;
const METRIC_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,62}$/;

export function findGivenProblem({ reward, metrics = {}, ...texts }: GivenReward): string | null {
  if (!isReward(reward)) return `the reward must be ${REWARD_RULE}, got ${showValue(reward)}; give one`;
  return findMetricsProblem(metrics) ?? findTextsProblem(texts);
}

export function findTextsProblem({
  by = null,
  note = null,
  key = null,
}: Pick<GivenReward, 'by' | 'note' | 'key'>): string | null {
  return (
    findTextProblem('by', by, MAX_BY) ?? findTextProblem('note', note, MAX_NOTE) ?? findTextProblem('key', key, MAX_KEY)
  );
}

function findMetricsProblem(metrics: unknown): string | null {
  if (typeof metrics !== 'object' || metrics === null || Array.isArray(metrics))
    return `metrics must be numbers by name, got ${showValue(metrics)}; send { tone: 1 }`;
  const entries = Object.entries(metrics);
  if (entries.length > MAX_METRICS)
    return `a reward may have ${MAX_METRICS} metrics, got ${entries.length}; send fewer`;
  const misnamed = entries.find(([name]) => !METRIC_NAME.test(name) || isNamedReward(name));
  if (misnamed !== undefined)
    return `a metric must be named by letters, digits, _, - and ., got ${showValue(misnamed[0])}; rename it`;
  const own = findMetricNameProblem(Object.keys(metrics));
  const wrong = entries.find(([, value]) => typeof value !== 'number' || !Number.isFinite(value));
  return own !== null || wrong === undefined
    ? own
    : `the metric ${wrong[0]} must be a finite number, got ${showValue(wrong[1])}; correct it, or leave it out`;
}

function findTextProblem(name: string, text: unknown, most: number): string | null {
  if (text === null || (typeof text === 'string' && text.length <= most && text.trim() !== '')) return null;
  return `${name} must be a text of 1 to ${most} characters, got ${showValue(text)}; shorten it, or leave it out`;
}
