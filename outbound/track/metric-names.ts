/**
 * NamedMetrics of a run under ART's names. The numbers are the curve's and the evaluations': every tracker, and the
 * workers' /metrics, use the same ones.
 */
import type { EvalResult, StepSummary } from '../../core/contract/contract.ts';
import { costMetrics } from '../../core/rules/costs.ts';
import { headline, headlineInterval } from '../../core/reports/format.ts';
import type { DeliveryRow, StepTotals } from '../target.ts';

export type NamedMetrics = Record<string, number>;

/** Step metric of each row: W&B and others number rows themselves. */
export const STEP_METRIC = 'training_step';

export function metricsOfRow(row: DeliveryRow): NamedMetrics {
  const metrics = row.kind === 'step' ? metricsOfStep(row.summary, row.totals) : metricsOfEvaluation(row.result);
  return { [STEP_METRIC]: row.step, ...metrics };
}

/** All numbers of a step. Those that a step does not have are absent. An agent's take no place of Temper's own. */
export function metricsOfStep(summary: StepSummary, totals: StepTotals): NamedMetrics {
  const { train, seconds } = summary;
  return finite({
    'before/loss': train['heldOutLossBefore'],
    'after/loss': train['heldOutLoss'],
    ...renamed(summary.metrics, JUDGING, (name) => `train/${name}`),
    'train/reward': summary.reward,
    'train/exception_rate': share(summary.failedAttempts, summary.attempts),
    'train/truncation_rate': share(summary.truncatedAttempts ?? summary.train['truncated'], summary.attempts),
    'loss/learning_rate': summary.learningRate,
    'data/step_num_scenarios': playedGroups(summary),
    'data/step_num_trajectories': summary.attempts,
    'data/step_num_groups_submitted': playedGroups(summary),
    'data/step_num_groups_trainable': summary.groups,
    'data/step_actor_tokens': summary.sampledTokens,
    'data/cum/num_trajectories': totals.attempts,
    'data/cum/actor_tokens': totals.sampledTokens,
    'time/wall_clock_sec': totals.seconds,
    'throughput/avg_actor_tok_per_s': rate(summary.sampledTokens, summary.seconds['rollout']),
    'throughput/avg_trainer_tok_per_s': rate(summary.train['trainedTokens'], summary.seconds['train']),
    ...costMetrics(summary),
    ...renamed(train, TRAINER, (name) => `trainer/${snakeCase(name)}`),
    ...renamed(seconds, TIMES, (name) => `time/${snakeCase(name)}_s`),
  });
}

export function metricsOfEvaluation(evaluation: EvalResult): NamedMetrics {
  const { reward, metrics, attempts, failed } = evaluation;
  return finite({
    ...resultOf(evaluation),
    ...renamed(metrics, {}, (name) => `val/${name}`),
    'val/reward': reward,
    'val/exception_rate': failed / attempts,
  });
}

/**
 * The run's result as the terminal's last line says it, under the names that every tracker shows first: MLflow, Trackio
 * and Weights & Biases sort metrics, and sections of charts, by name.
 */
export function resultOf(evaluation: EvalResult): NamedMetrics {
  const { label, value } = headline(evaluation);
  const [low, high] = headlineInterval(evaluation) ?? [];
  const when = evaluation.step === 0 ? 'before' : 'after';
  return finite({
    [`${when}/${label}`]: value,
    [`${when}/${label}_low`]: low,
    [`${when}/${label}_high`]: high,
    ...(when === 'after' && { 'after/step': evaluation.step }),
  });
}

/** Last values of a step and the best evaluation, for the table of a tracker's runs. */
export function bestEvaluation(evals: readonly EvalResult[]): EvalResult | null {
  return evals.reduce<EvalResult | null>(
    (best, each) => (each.reward !== null && each.reward > (best?.reward ?? -Infinity) ? each : best),
    null,
  );
}

type Named = Readonly<Record<string, string>>;

/** Metrics that Temper adds to those of the agent. */
const JUDGING: Named = {
  judgeCalls: 'judge/calls',
  judgeCached: 'judge/cached',
  judgeTokens: 'judge/tokens',
  judgeUsd: 'costs/train/judge',
};

const TIMES: Named = {
  step: 'time/step_wall_s',
  rollout: 'time/step_rollout_s',
  judge: 'time/step_judge_s',
  train: 'time/step_trainer_s',
};

/** Of the trainer; others keep their own names. */
const TRAINER: Named = {
  rewardStd: 'train/reward_std_dev',
  loss: 'loss/train',
  entropy: 'loss/entropy',
  kl: 'loss/kl_div',
  gradNorm: 'loss/grad_norm',
  trainedTokens: 'data/step_trainer_tokens',
  heldOutLoss: 'loss/val',
};

function renamed(
  values: Readonly<Record<string, number | null>>,
  names: Named,
  other: (name: string) => string,
): Record<string, number | null> {
  const nameOf = (name: string): string => (Object.hasOwn(names, name) ? names[name]! : other(name));
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [nameOf(name), value]));
}

/** Groups that were played, replaced ones included. */
function playedGroups({ groups, unused }: StepSummary): number {
  return groups + Object.values(unused).reduce((sum, count) => sum + count, 0);
}

function share(part: number | null | undefined, whole: number): number | null {
  return whole > 0 ? (part ?? 0) / whole : null;
}

function rate(amount: number | null | undefined, per: number | undefined): number | null {
  return amount !== null && amount !== undefined && per !== undefined && per > 0 ? amount / per : null;
}

/** `trainer.load` → `trainer_load`, `maxAbsLogRatio` → `max_abs_log_ratio`. */
function snakeCase(name: string): string {
  return name
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase();
}

function finite(values: Readonly<Record<string, number | null | undefined>>): NamedMetrics {
  const known = Object.entries(values).filter((entry): entry is [string, number] => Number.isFinite(entry[1]));
  return Object.fromEntries(known);
}
