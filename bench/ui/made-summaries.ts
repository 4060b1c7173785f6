/** Summaries of a run that was never trained. */
import type { EvalResult, RunState, StepSummary } from '../../core/contract/contract.ts';
import { NOT_STEERED } from '../../core/names/lineage.ts';
import { mean } from '../../core/numbers/statistics.ts';
import { adapterName, type PlayedGroup, type Writing } from './writing.ts';

export function summarise({ config, options }: Writing, step: number, played: readonly PlayedGroup[]): StepSummary {
  const records = played.flatMap(({ made }) => made.map(({ record }) => record));
  const trained = played.filter(({ hasVariance }) => hasVariance).length;
  const named = played.flatMap(({ made }) => made.flatMap((each) => (each.record.status === 'ok' ? [each.named] : [])));
  const ok = records.filter(({ status }) => status === 'ok');
  return {
    step,
    reward: mean(ok.map(({ reward }) => reward ?? 0)),
    metrics: {
      correctRate: mean(ok.map(({ metrics }) => Number(metrics['correct']))) ?? 0,
      'reward/answer': mean(named.map(({ answer = 0 }) => answer)) ?? 0,
      'reward/format': mean(named.map(({ format = 0 }) => format)) ?? 0,
    },
    train:
      trained === 0 ? {} : { entropy: 1.2 - (0.8 * step) / options.steps, gradNorm: 0.1, loss: 0.01, logprobK3: 1e-12 },
    learningRate: config.learningRate,
    groups: trained,
    replacedGroups: 0,
    unused: trained === played.length ? {} : { 'no-variance': played.length - trained },
    failedAttempts: records.length - ok.length,
    truncatedAttempts: records.filter(({ truncated }) => truncated).length,
    attempts: records.length,
    sampledTokens: records.flatMap(({ calls }) => calls).reduce((sum, { tokenIds }) => sum + tokenIds.length, 0),
    seconds: { rollout: 31, judge: 0.5, train: 13, step: 46 },
    adapterSha256: adapterName(step),
    usage: { promptTokens: 100, cachedPromptTokens: 50, sampledTokens: 50 },
    costs: { seconds: 60, usd: { gpu: 0.02 }, cumulativeUsd: 0.02 * step },
  };
}

export function stateOf({ options, config }: Writing, evals: EvalResult[]): RunState {
  const { run, steps, state } = options;
  return {
    run,
    agent: config.agent,
    baseModel: config.baseModel,
    branch: 0,
    state,
    step: steps,
    steps: state === 'completed' ? steps : steps + 10,
    phase: state === 'completed' ? 'done' : 'rollout',
    waitingFor: null,
    reward: 0.9,
    evalBefore: evals[0]!,
    evalAfter: evals.at(-1)!,
    evals,
    wallSeconds: steps * 60,
    adapterSha256: adapterName(steps),
    failure: null,
    notes: [],
    ...NOT_STEERED,
    costs: {
      seconds: steps * 60,
      usage: { promptTokens: 0, cachedPromptTokens: 0, sampledTokens: 0 },
      usd: { gpu: 0.02 * steps },
      unpriced: [],
    },
  };
}
