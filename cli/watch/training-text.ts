/** Training metrics of a step that a user acts on. The report and `show --json` have all of them. */
import type { StepSummary } from '../../core/contract/contract.ts';
import { formatDuration, formatNumber } from '../../core/reports/format.ts';
import { MOST_MISMATCH } from '../../core/reports/training-warnings.ts';

type Train = StepSummary['train'];

/** Shorter phases are not shown. */
const LEAST_SECONDS = 0.05;
const PHASES = { rollout: 'rollout', judge: 'judge', train: 'train', wait: 'wait', commit: 'trainer.commit' } as const;
const SEPARATOR = ' · ';

/** Most important first: a narrow terminal shows only these. */
export function describeTraining(step: StepSummary): string[] {
  const { train } = step;
  return [
    ...numbersOf(train, ['entropy', 'gradNorm']),
    ...numbersOf(train, ['logprobK3'], { above: MOST_MISMATCH }),
    ...numbersOf(train, lastPass(train)),
    ...numbersOf(train, ['clippedShare', 'staleness', 'kl', 'correctedShare'], { above: 0 }),
    ...countsOf(step),
    ...numbersOf(train, ['maxAbsLogRatio', 'advantageMass', 'forks'], { above: 0 }),
    ...tokensOf(train),
  ];
}

/** Most important first, for one line of a log. */
export function describeTrainingBriefly({ train }: StepSummary): string[] {
  return [
    ...numbersOf(train, ['logprobK3'], { above: MOST_MISMATCH }),
    ...numbersOf(train, ['entropy', ...lastPass(train), 'loss']),
    ...numbersOf(train, ['clippedShare'], { above: 0 }),
  ];
}

/** ` ± 0.312 (0 to 1)`: standard deviation and range over the attempts of trained groups. */
export function describeSpread({ rewardStd, rewardMin, rewardMax }: Train): string {
  if (typeof rewardStd !== 'number') return '';
  return ` ± ${formatNumber(rewardStd)} (${compact(rewardMin)} to ${compact(rewardMax)})`;
}

export function describePhases(secondsOf: (name: string) => number): string[] {
  return Object.entries(PHASES).flatMap(([phase, name]) => {
    const seconds = secondsOf(name);
    return seconds < LEAST_SECONDS ? [] : [`${phase} ${formatDuration(seconds)}`];
  });
}

/** Takes as many whole entries as fit into the rows, in order. */
export function fillRows(items: readonly string[], width: number, most: number): string[] {
  const rows: string[] = [];
  for (const item of items) {
    const longer = [rows.at(-1), item].filter((part) => part !== undefined).join(SEPARATOR);
    if (longer.length <= width) rows.splice(-1, 1, longer);
    else if (rows.length < most && item.length <= width) rows.push(item);
  }
  return rows;
}

/** Last pass over the batch, which has moved the policy furthest. */
function lastPass(train: Train): string[] {
  const ratios = Object.keys(train).filter((name) => /^pass\d+RatioK3$/.test(name));
  return ratios.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).slice(-1);
}

function numbersOf(train: Train, names: readonly string[], { above = Number.NEGATIVE_INFINITY } = {}): string[] {
  const known = names.filter((name) => name in train && (train[name] ?? Number.POSITIVE_INFINITY) > above);
  return known.map((name) => `${name} ${compact(train[name])}`);
}

function countsOf({ failedAttempts, truncatedAttempts, replacedGroups, train }: StepSummary): string[] {
  const counts: [string, number][] = [
    ['failed', failedAttempts],
    ['truncated', truncatedAttempts ?? train['truncated'] ?? 0],
    ['replaced', replacedGroups],
  ];
  return counts.flatMap(([name, count]) => (count > 0 ? [`${name} ${compact(count)}`] : []));
}

/** `tokens 960 trained, 40 masked, 5240 shared` */
function tokensOf({ sampledTokens, trainedTokens, sharedTokens }: Train): string[] {
  if (typeof trainedTokens !== 'number') return [];
  const masked = (sampledTokens ?? trainedTokens) - trainedTokens;
  const rest = [masked ? `, ${masked} masked` : '', sharedTokens ? `, ${sharedTokens} shared` : ''];
  return [`tokens ${trainedTokens} trained${rest.join('')}`];
}

function compact(value: number | null | undefined): string {
  return Number.isInteger(value) ? String(value) : formatNumber(value);
}
