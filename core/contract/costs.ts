/** Tokens and money of a run, on the wire. Display only: nothing here is hashed. */
import { z } from 'zod';

import { count } from './values.ts';

const usd = z.number().min(0);

/** Calls of hosted models by an agent: `context.hosted` and hosted roles. */
export const HostedUsage = z
  .strictObject({
    calls: count,
    promptTokens: count,
    completionTokens: count,
    /** US dollars of the calls with a known price. */
    usd,
    /** Models whose price is unknown. Absent: none. */
    unpriced: z.array(z.string().max(200)).optional(),
  })
  .meta({ id: 'HostedUsage' });
export type HostedUsage = z.infer<typeof HostedUsage>;

/** Tokens of attempts. */
export const Usage = z
  .strictObject({
    promptTokens: count,
    /** Those of them with which an earlier call of the group began: a prefix cache holds them. */
    cachedPromptTokens: count,
    sampledTokens: count,
    /** Absent: no hosted model was called. */
    hosted: HostedUsage.optional(),
  })
  .meta({ id: 'Usage' });
export type Usage = z.infer<typeof Usage>;

/** US dollars by cause; absent: nothing of it has a price. */
export const Dollars = z
  .strictObject({
    gpu: usd.optional(),
    judge: usd.optional(),
    /** Hosted models that play with the policy in training. */
    hosted: usd.optional(),
    /** Hosted models in evaluations. */
    eval: usd.optional(),
  })
  .meta({ id: 'Dollars' });
export type Dollars = z.infer<typeof Dollars>;

/** Time and money since the step before, evaluations included. */
export const StepCosts = z
  .strictObject({
    /** Seconds by the workflow's clock, without pauses. */
    seconds: z.number().min(0),
    usd: Dollars,
    /** Sum up to this step, over all branches. */
    cumulativeUsd: usd,
  })
  .meta({ id: 'StepCosts' });
export type StepCosts = z.infer<typeof StepCosts>;

/** Sums of a run over all branches: a rollback refunds nothing. */
export const RunCosts = z
  .strictObject({
    seconds: z.number().min(0),
    /** Tokens of training and evaluation. */
    usage: Usage,
    usd: Dollars,
    /** Models whose calls are not in `usd`, because their price is unknown. */
    unpriced: z.array(z.string().max(200)),
    /** Budgets; absent: none. */
    maxCostUsd: usd.optional(),
    maxHours: z.number().min(0).optional(),
  })
  .meta({ id: 'RunCosts' });
export type RunCosts = z.infer<typeof RunCosts>;
