/** Tokens, time and money of a planned run, from one that was measured. */
import type { RunConfig, RunState, Usage } from '../../core/contract/contract.ts';
import { isEvaluationDue } from '../../core/plan/evaluation.ts';
import { usdOfTokens, type ModelPrice } from '../../core/numbers/prices.ts';
import { supervisedSteps } from '../../core/rules/supervised.ts';
import { sumUsage, type Measured, type MeasuredStep } from './measure.ts';

export interface Spread {
  readonly low: number;
  readonly expected: number;
  readonly high: number;
}

export interface ForecastPlan {
  readonly config: RunConfig;
  /** Held-out scenarios of an evaluation. */
  readonly evalScenarios: number;
  /** Null for a run that has not begun. */
  readonly state: RunState | null;
  /** Price of the judge; null: unknown, or nobody is paid. */
  readonly judgePrice: ModelPrice | null;
}

export interface Forecast {
  readonly steps: number;
  readonly evaluations: number;
  readonly promptTokens: Spread;
  readonly cachedPromptTokens: Spread;
  readonly sampledTokens: Spread;
  readonly trainingTokens: Spread;
  /** Null without a judge that answers. */
  readonly judge: { readonly calls: Spread; readonly promptTokens: Spread; readonly completionTokens: Spread } | null;
  readonly hosted: { readonly promptTokens: Spread; readonly completionTokens: Spread } | null;
  readonly seconds: Spread;
  /** Money by cause; absent: nothing of it has a price. */
  readonly usd: { readonly gpu?: Spread; readonly judge?: Spread; readonly hosted?: Spread };
  /** Hosted models without a price. */
  readonly unpriced: readonly string[];
}

const NONE: Spread = { low: 0, expected: 0, high: 0 };
/** Below so many steps, their spread says little: these shares are assumed. */
const ENOUGH_STEPS = 8;
const ASSUMED = { tokens: 0.25, seconds: 0.4 };
/** The least that a range spans to each side: another run samples other attempts, on a host that does other work. */
const LEAST = { tokens: 0.05, seconds: 0.15 };
/** The range spans the means of so many parts of the measured run: a policy changes while it learns. */
const PARTS = 4;

export function forecast(measured: Measured, plan: ForecastPlan): Forecast {
  const { config } = plan;
  const steps = playedSteps(plan);
  const evaluations = countEvaluations(plan);
  const attempts = steps * config.groupsPerStep * config.groupSize;
  const inSteps = (kind: Kind, of: (step: MeasuredStep) => number | null) =>
    times(rateOf(measured, kind, of), attempts);
  const evaluated = forecastEvaluations(measured, evaluations * plan.evalScenarios);
  const ofUsage = (of: (usage: Usage) => number) =>
    add(
      inSteps('tokens', ({ usage }) => of(usage)),
      spread(of(evaluated.usage), ASSUMED.tokens / 2),
    );
  const judge = forecastJudge(measured, attempts);
  const seconds = add(
    inSteps('seconds', (step) => step.seconds),
    spread(evaluated.seconds + (plan.state === null ? measured.startSeconds : 0), LEAST.seconds),
  );
  const hosted = forecastHosted(measured, ofUsage);
  return {
    steps,
    evaluations,
    promptTokens: ofUsage(({ promptTokens }) => promptTokens),
    cachedPromptTokens: ofUsage(({ cachedPromptTokens }) => cachedPromptTokens),
    sampledTokens: ofUsage(({ sampledTokens }) => sampledTokens),
    trainingTokens: inSteps('tokens', ({ trainingTokens }) => trainingTokens),
    judge,
    hosted: hosted?.tokens ?? null,
    seconds,
    usd: {
      ...(config.gpuUsdPerHour !== null && { gpu: times(seconds, config.gpuUsdPerHour / 3600) }),
      ...usdOfJudge(judge, plan.judgePrice),
      ...(hosted !== null && { hosted: hosted.usd }),
    },
    unpriced: [
      ...(hosted?.unpriced ?? []),
      ...(judge !== null && plan.judgePrice === null ? [config.judge ?? ''] : []),
    ],
  };
}

function playedSteps({ config, state }: ForecastPlan): number {
  const begun = Math.max(state?.step ?? 0, supervisedSteps(config));
  return Math.max(0, config.steps - begun);
}

function countEvaluations({ config, state }: ForecastPlan): number {
  const from = state?.step ?? 0;
  const due = Array.from({ length: config.steps - from }, (_, index) => isEvaluationDue(config, from + index + 1));
  return due.filter(Boolean).length + (state === null ? 1 : 0);
}

type Kind = keyof typeof ASSUMED;

/** Rate by attempt of the plan: groups that were played in place of others count with those. */
function rateOf({ config, steps }: Measured, kind: Kind, of: (step: MeasuredStep) => number | null): Spread {
  const planned = config.groupsPerStep * config.groupSize;
  const rates = steps.map(of).flatMap((value) => (value === null ? [] : [value / planned]));
  if (rates.length === 0) return NONE;
  const expected = mean(rates);
  if (rates.length < ENOUGH_STEPS) return spread(expected, ASSUMED[kind]);
  const size = Math.ceil(rates.length / PARTS);
  const parts = Array.from({ length: Math.ceil(rates.length / size) }, (_, part) =>
    mean(rates.slice(part * size, (part + 1) * size)),
  );
  const least = spread(expected, LEAST[kind]);
  return { low: Math.min(least.low, ...parts), expected, high: Math.max(least.high, ...parts) };
}

function forecastEvaluations({ evaluation }: Measured, attempts: number): { usage: Usage; seconds: number } {
  if (evaluation === null) return { usage: { promptTokens: 0, cachedPromptTokens: 0, sampledTokens: 0 }, seconds: 0 };
  const share = attempts / Math.max(1, evaluation.attempts);
  const { promptTokens, cachedPromptTokens, sampledTokens, hosted } = evaluation.usage;
  return {
    usage: {
      promptTokens: promptTokens * share,
      cachedPromptTokens: cachedPromptTokens * share,
      sampledTokens: sampledTokens * share,
      ...(hosted && {
        hosted: {
          ...hosted,
          promptTokens: hosted.promptTokens * share,
          completionTokens: hosted.completionTokens * share,
          usd: hosted.usd * share,
        },
      }),
    },
    seconds: evaluation.seconds * share,
  };
}

function forecastJudge({ judging, steps, config }: Measured, attempts: number): Forecast['judge'] {
  if (judging === null || judging.calls === 0) return null;
  const share = attempts / (steps.length * config.groupsPerStep * config.groupSize);
  const of = (count: number) => spread(count * share, steps.length < ENOUGH_STEPS ? ASSUMED.tokens : LEAST.tokens);
  const { calls, promptTokens, completionTokens } = judging;
  return { calls: of(calls), promptTokens: of(promptTokens), completionTokens: of(completionTokens) };
}

function usdOfJudge(judge: Forecast['judge'], price: ModelPrice | null): { judge?: Spread } {
  if (judge === null || price === null) return {};
  const usd = (end: keyof Spread) => usdOfTokens(price, judge.promptTokens[end], judge.completionTokens[end]);
  return { judge: { low: usd('low'), expected: usd('expected'), high: usd('high') } };
}

function forecastHosted({ steps }: Measured, ofUsage: (of: (usage: Usage) => number) => Spread) {
  const { hosted } = sumUsage(steps);
  if (hosted === undefined) return null;
  return {
    tokens: {
      promptTokens: ofUsage((usage) => usage.hosted?.promptTokens ?? 0),
      completionTokens: ofUsage((usage) => usage.hosted?.completionTokens ?? 0),
    },
    usd: ofUsage((usage) => usage.hosted?.usd ?? 0),
    unpriced: hosted.unpriced ?? [],
  };
}

export function sumSpreads(ranges: readonly Spread[]): Spread {
  return ranges.reduce(add, NONE);
}

function add(left: Spread, right: Spread): Spread {
  return { low: left.low + right.low, expected: left.expected + right.expected, high: left.high + right.high };
}

function times({ low, expected, high }: Spread, factor: number): Spread {
  return { low: low * factor, expected: expected * factor, high: high * factor };
}

function spread(expected: number, share: number): Spread {
  return { low: expected * (1 - share), expected, high: expected * (1 + share) };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
