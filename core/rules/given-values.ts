/** What may be a reward, a weight or the name of a metric: agents, scripts, people and other systems give them. */

/** Larger rewards say no more to the trainer, and would overflow its sums or stay in running means for ever. */
const MOST_REWARD = 1e6;
/** How messages say it, after `must be`. */
export const REWARD_RULE = `a finite number from ${-MOST_REWARD} to ${MOST_REWARD}`;

export function isReward(value: number): boolean;
export function isReward(value: unknown): value is number;
export function isReward(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= MOST_REWARD;
}

export function isWeight(value: unknown): value is number {
  return isReward(value) && value >= 0;
}

/** Names of Temper's own numbers: curves, tables and trackers show one value for a name. */
const OWN_METRICS: ReadonlySet<string> = new Set([
  'reward',
  'reward_std_dev',
  'exception_rate',
  'truncation_rate',
  'agentReward',
  'rulerScore',
  'reviewScore',
  'judgeCalls',
  'judgeCached',
  'judgeTokens',
  'judgeUsd',
]);
const MAX_METRIC_NAME = 100;
/** Tables and files have a name in one line, and blanks would be lost in some of them. */
const UNPRINTABLE = /\p{C}|[^\S ]|^ | $| {2}/u;

/** The mistake in names of metrics; null if there is none. */
export function findMetricNameProblem(names: readonly string[]): string | null {
  // Every object of JavaScript seems to have a metric named `constructor`.
  const own = names.find((name) => OWN_METRICS.has(name) || name in Object.prototype);
  if (own !== undefined) return `metrics must not have reserved names, got ${own}; rename it, as in my_${own}`;
  const wrong = names.find((name) => name === '' || name.length > MAX_METRIC_NAME || UNPRINTABLE.test(name));
  return wrong === undefined
    ? null
    : `names of metrics must be printable text of 1 to ${MAX_METRIC_NAME} characters, got ${JSON.stringify(wrong.slice(0, 80))}; rename it`;
}
