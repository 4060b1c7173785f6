/** Number formats, the same in every command. */
import type { EvalResult } from '../contract/contract.ts';
import { estimateShare } from '../numbers/statistics.ts';
import { isNamedReward } from '../rules/named-rewards.ts';

export function formatNumber(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 10 ** -digits || size >= 1e6)) return value.toExponential(1);
  return Number.isInteger(value) && size >= 10 ? String(value) : value.toFixed(size >= 100 ? 0 : digits);
}

export function formatDuration(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

export function formatRate(perSecond: number): string {
  return perSecond >= 10_000 ? `${(perSecond / 1000).toFixed(0)} k` : perSecond.toFixed(0);
}

/** A share of attempts, from 0 to 1: the mean of a metric that is always boolean. */
export function isRate(name: string): boolean {
  return name.endsWith('Rate') && !isNamedReward(name);
}

/** `winRate` is shown as `win`; other metrics keep their name. */
export function metricLabel(name: string): string {
  return isRate(name) ? name.replace(/Rate$/, '') : name;
}

/** Metrics to show first: success, then failure, then named rewards; the rest follows in alphabetical order. */
const FIRST = ['winRate', 'correctRate', 'successRate', 'solvedRate', 'resolvedRate', 'wonRate', 'illegalRate'];

export function sortMetrics(names: Iterable<string>): string[] {
  return [...names].toSorted((a, b) => rank(a) - rank(b) || a.localeCompare(b));
}

function rank(name: string): number {
  if (FIRST.includes(name)) return FIRST.indexOf(name);
  return FIRST.length + (isNamedReward(name) ? 0 : 1);
}

/** Headline number of an evaluation: a success rate if the agent reports one, else the reward. */
export function headline(evaluation: Pick<EvalResult, 'reward' | 'metrics'>): { label: string; value: number | null } {
  const rate = successRate(evaluation.metrics);
  if (rate === null) return { label: 'reward', value: evaluation.reward };
  return { label: metricLabel(rate), value: evaluation.metrics[rate] ?? null };
}

/** The metric that says how often an agent succeeds; null if it reports none. */
export function successRate(metrics: Readonly<Record<string, number>>): string | null {
  const first = sortMetrics(Object.keys(metrics))[0];
  return first === undefined || first === 'illegalRate' || !FIRST.includes(first) ? null : first;
}

/** Value of a metric, or of the reward, by name: of an evaluation or a step. */
export function valueOf({ reward, metrics }: Pick<EvalResult, 'reward' | 'metrics'>, name: string): number | null {
  return name === 'reward' ? reward : (metrics[name] ?? null);
}

/** ` (at step 10)`, where the run has gone on since. */
export function olderThan(step: number, evaluation: EvalResult): string {
  return evaluation.step === step ? '' : ` (at step ${evaluation.step})`;
}

/** Heading of a result: `Share of win on held-out scenarios`. */
export function heldOutHeading(label: string): string {
  return `${label === 'reward' ? 'Mean reward' : `Share of ${label}`} on held-out scenarios`;
}

/** `60 held-out scenarios`, and how many attempts they were where each was played several times. */
export function describeHeldOut({ attempts, scenarios = attempts }: EvalResult): string {
  const played = scenarios === attempts ? '' : `, ${plural(attempts, 'attempt')}`;
  return plural(scenarios, 'held-out scenario') + played;
}

/** `0.925 win` */
export function describeHeadline(evaluation: EvalResult): string {
  const { label, value } = headline(evaluation);
  return `${formatNumber(value)} ${label}`;
}

/** 95 % interval of the headline; null where it is no share of attempts. */
export function headlineInterval(evaluation: EvalResult): readonly [low: number, high: number] | null {
  const { label, value } = headline(evaluation);
  const played = evaluation.attempts - evaluation.failed;
  if (label === 'reward' || value === null || played < 1) return null;
  const { low, high } = estimateShare(value, played);
  return [low, high];
}

/** `0.925 win (0.880 to 0.954)` */
function describeHeadlineWithInterval(evaluation: EvalResult): string {
  const interval = headlineInterval(evaluation);
  const bounds = interval === null ? '' : ` (${formatNumber(interval[0])} to ${formatNumber(interval[1])})`;
  return describeHeadline(evaluation) + bounds;
}

/** `before: 0.510 win (0.441 to 0.578) · after: 0.930 win (0.886 to 0.958) (200 held-out scenarios, 95 % intervals)` */
export function describeHeldOutChange(evalBefore: EvalResult, evalAfter: EvalResult | null, step: number): string {
  const before = describeHeadlineWithInterval(evalBefore);
  const after = evalAfter && ` · after: ${describeHeadlineWithInterval(evalAfter)}${olderThan(step, evalAfter)}`;
  const intervals = headlineInterval(evalBefore) === null ? '' : ', 95 % intervals';
  return `before: ${before}${after ?? ''} (${describeHeldOut(evalBefore)}${intervals})`;
}

/** `reward 0.120 · win 0.512 · illegal 0.081`; `spread` stands beside the reward. */
export function describeMetrics(reward: number | null, metrics: Readonly<Record<string, number>>, spread = ''): string {
  const parts = sortMetrics(Object.keys(metrics)).map((name) => `${metricLabel(name)} ${formatNumber(metrics[name])}`);
  return [`reward ${formatNumber(reward)}${spread}`, ...parts].join(' · ');
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

/** `2026-11-21T03:00:00Z` */
export function formatTime(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** `step 5`, `steps 5 to 9`. */
export function formatSteps([first, last]: readonly [number, number]): string {
  return first === last ? `step ${first}` : `steps ${first} to ${last}`;
}
