/** Sums of tokens, time and money of a run; pure. */
import type { CostLedger, Dollars, HostedUsage, RunConfig, RunCosts, StepCosts, Usage } from '../contract/contract.ts';
import { formatUsd, NOTHING_SPENT } from './judge-spending.ts';

export const NO_USAGE: Usage = { promptTokens: 0, cachedPromptTokens: 0, sampledTokens: 0 };

export const NO_COSTS: RunCosts = { seconds: 0, usage: NO_USAGE, usd: {}, unpriced: [] };

export const NO_STEP = { seconds: 0, usd: {} };

export const EMPTY_LEDGER: CostLedger = {
  spent: NO_COSTS,
  judging: NOTHING_SPENT,
  lastStep: NO_STEP,
  sinceStep: NO_STEP,
};

export function addUsages(usages: readonly Usage[]): Usage {
  return usages.reduce(addUsage, NO_USAGE);
}

function addUsage(left: Usage, right: Usage): Usage {
  const hosted = [left.hosted, right.hosted].filter((each) => each !== undefined);
  return {
    promptTokens: left.promptTokens + right.promptTokens,
    cachedPromptTokens: left.cachedPromptTokens + right.cachedPromptTokens,
    sampledTokens: left.sampledTokens + right.sampledTokens,
    ...(hosted.length > 0 && { hosted: hosted.reduce(addHosted) }),
  };
}

export function addHosted(left: HostedUsage, right: HostedUsage): HostedUsage {
  const unpriced = union(left.unpriced ?? [], right.unpriced ?? []);
  return {
    calls: left.calls + right.calls,
    promptTokens: left.promptTokens + right.promptTokens,
    completionTokens: left.completionTokens + right.completionTokens,
    usd: left.usd + right.usd,
    ...(unpriced.length > 0 && { unpriced }),
  };
}

export function union(left: readonly string[], right: readonly string[]): string[] {
  return [...new Set([...left, ...right])].toSorted();
}

const CAUSES = { gpu: 'hardware', judge: 'judge', hosted: 'hosted models', eval: 'evaluations' } as const;
type Cause = keyof typeof CAUSES;

function causesOf(usd: Dollars): [Cause, number][] {
  return (Object.keys(CAUSES) as Cause[]).flatMap((cause): [Cause, number][] => {
    const amount = usd[cause];
    return amount === undefined ? [] : [[cause, amount]];
  });
}

/** Adds what is known. */
export function addDollars(left: Dollars, right: Dollars): Dollars {
  const added = causesOf(right).map(([cause, usd]): [Cause, number] => [cause, (left[cause] ?? 0) + usd]);
  return { ...left, ...Object.fromEntries(added) };
}

export function sumUsd(usd: Dollars): number {
  return causesOf(usd).reduce((sum, [, amount]) => sum + amount, 0);
}

export function usdOfHours(usdPerHour: number | null, seconds: number): Pick<Dollars, 'gpu'> {
  return usdPerHour === null ? {} : { gpu: (usdPerHour * seconds) / 3600 };
}

/** ART's names of a step's costs; without a price there are none. */
export function costMetrics({ costs }: { readonly costs?: StepCosts | undefined }): Record<string, number> {
  if (costs === undefined || causesOf(costs.usd).length === 0) return {};
  const { gpu, judge, hosted, eval: evaluation } = costs.usd;
  const hasTrain = judge !== undefined || hosted !== undefined;
  return {
    ...(gpu !== undefined && { 'costs/gpu': gpu }),
    ...(hasTrain && { 'costs/train': (judge ?? 0) + (hosted ?? 0) }),
    ...(evaluation !== undefined && { 'costs/eval': evaluation }),
    'costs/all': sumUsd(costs.usd),
    'costs/cum/all': costs.cumulativeUsd,
  };
}

/** `$12.40 of $25.00 (hardware $10.20, judge $2.20), 3.4 h of 10 h`; null: nothing has a price or a budget. */
export function describeCosts({ usd, unpriced, maxCostUsd, seconds, maxHours }: RunCosts): string | null {
  const causes = causesOf(usd);
  const parts = causes.map(([cause, amount]) => `${CAUSES[cause]} $${formatUsd(amount)}`);
  const limit = maxCostUsd === undefined ? '' : ` of $${formatUsd(maxCostUsd)}`;
  const texts = [
    ...(parts.length === 0 && limit === '' ? [] : [`$${formatUsd(sumUsd(usd))}${limit}${inBrackets(parts)}`]),
    ...(unpriced.length === 0 ? [] : [`without ${unpriced.join(', ')} (unknown price)`]),
    ...(maxHours === undefined ? [] : [`${showHours(seconds / 3600)} of ${showHours(maxHours)}`]),
  ];
  return texts.length === 0 ? null : texts.join(', ');
}

function inBrackets(parts: readonly string[]): string {
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

/** `1204000 prompt (81 % cached), 310000 sampled`. */
export function describeUsage({ promptTokens, cachedPromptTokens, sampledTokens }: Usage): string {
  const cached = promptTokens === 0 ? 0 : Math.round((100 * cachedPromptTokens) / promptTokens);
  return `${promptTokens} prompt (${cached} % cached), ${sampledTokens} sampled`;
}

/** A limit of a run, what counts against it, and how much of that its last step was. */
export interface Budget {
  readonly setting: keyof typeof FLAGS;
  readonly subject: string;
  readonly limit: number | null;
  readonly spent: number;
  readonly lastStep: number;
}

export interface ExceededBudget {
  /** The setting as `temper set` takes it. */
  readonly flag: string;
  readonly complaint: string;
}

const FLAGS = { maxCostUsd: 'max-cost-usd', maxHours: 'max-hours' } as const;

/** The first budget that the next step would exceed if it costs as much as the last one. */
export function findExceeded(budgets: readonly Budget[]): ExceededBudget | null {
  const found = budgets.find(isExceeded);
  if (found === undefined) return null;
  const { setting, subject, limit, spent, lastStep } = found;
  const show = setting === 'maxHours' ? showHours : (usd: number) => `$${formatUsd(usd)}`;
  const last = lastStep === 0 ? '' : `, the last step ${show(lastStep)}`;
  return { flag: FLAGS[setting], complaint: `${subject} ${show(spent)} of ${setting} ${show(limit!)}${last}` };
}

function isExceeded({ limit, spent, lastStep }: Budget): boolean {
  return limit !== null && (spent >= limit || spent + lastStep > limit);
}

function showHours(hours: number): string {
  return `${Number(hours.toPrecision(3))} h`;
}

/** Budgets on the whole run. */
export function runBudgets(
  { maxCostUsd, maxHours }: Pick<RunConfig, 'maxCostUsd' | 'maxHours'>,
  { usd, seconds }: RunCosts,
  lastStep: Pick<StepCosts, 'usd' | 'seconds'>,
): Budget[] {
  return [
    {
      setting: 'maxCostUsd',
      subject: 'the run has cost',
      limit: maxCostUsd,
      spent: sumUsd(usd),
      lastStep: sumUsd(lastStep.usd),
    },
    {
      setting: 'maxHours',
      subject: 'the run has worked',
      limit: maxHours,
      spent: seconds / 3600,
      lastStep: lastStep.seconds / 3600,
    },
  ];
}
