/** Tokens and time of a run that was played, by planned attempt: what a forecast is made of. */
import type { JudgeSpending, RunConfig, StepSummary, Usage } from '../../core/contract/contract.ts';
import { addUsages, NO_USAGE } from '../../core/rules/costs.ts';
import type { PriceTable } from '../../core/numbers/prices.ts';
import { branchOfStep } from '../../core/names/lineage.ts';
import { readEvalRollouts, readEvalSeconds, type StoredRun } from '../../store/records/runs/run-reader.ts';
import { usageOfAttempts } from '../../store/records/groups/usage.ts';
import type { Store } from '../../store/store.ts';

export interface MeasuredStep {
  readonly usage: Usage;
  /** Tokens that the trainer computed, prompts included. */
  readonly trainingTokens: number;
  /** Null if they say nothing of the next steps: the first step loads and compiles. */
  readonly seconds: number | null;
}

export interface Measured {
  readonly config: RunConfig;
  readonly steps: readonly MeasuredStep[];
  /** Seconds before the first step and those that it took longer than the next ones. */
  readonly startSeconds: number;
  /** Attempts, tokens and time of the evaluations that were read; null if there was none. */
  readonly evaluation: { readonly attempts: number; readonly usage: Usage; readonly seconds: number } | null;
  readonly judging: JudgeSpending | null;
}

type Played = StepSummary & { readonly usage: Usage };

/** Null for a run without a played step that has told its tokens. */
export async function measureRun(store: Store, run: StoredRun, prices: PriceTable): Promise<Measured | null> {
  const { file, state } = run;
  const steps = run.steps.filter((step): step is Played => step.usage !== undefined);
  if (state === null || steps.length === 0) return null;
  const evaluations = await Promise.all(
    edges(state.evals.map(({ step }) => step)).map((step) =>
      measureEvaluation(store, { run: file.config.run, branch: branchOfStep(state.lineage, step), step }, prices),
    ),
  );
  const known = evaluations.filter((each) => each !== null);
  const measured = steps.map((step, index) => measureStep(step, index === 0 && steps.length > 1, file.config));
  return {
    config: file.config,
    steps: measured,
    startSeconds: findStartSeconds(steps, measured, known[0]?.seconds ?? 0),
    evaluation: known.length === 0 ? null : known.reduce(addEvaluations),
    judging: state.judging,
  };
}

type Evaluation = NonNullable<Measured['evaluation']>;
type Place = Parameters<typeof readEvalSeconds>[1];

async function measureEvaluation(store: Store, place: Place, prices: PriceTable): Promise<Evaluation | null> {
  const [rollouts, seconds] = [await readEvalRollouts(store, place), await readEvalSeconds(store, place)];
  if (rollouts === null || seconds === null) return null;
  const { attempts } = rollouts;
  // Its scenarios differ: nothing but an attempt's own turns is cached.
  return {
    attempts: attempts.length,
    usage: addUsages(attempts.map((each) => usageOfAttempts([each], prices))),
    seconds,
  };
}

function addEvaluations(left: Evaluation, right: Evaluation): Evaluation {
  return {
    attempts: left.attempts + right.attempts,
    usage: addUsages([left.usage, right.usage]),
    seconds: left.seconds + right.seconds,
  };
}

function measureStep(step: Played, isWarmUp: boolean, { maxStaleness }: RunConfig): MeasuredStep {
  // Overlapping steps take longer than the time between them.
  const pace = maxStaleness > 0 ? step.costs?.seconds : step.seconds['step'];
  const { computedTokens } = step.train;
  return {
    usage: step.usage,
    trainingTokens: typeof computedTokens === 'number' ? computedTokens : 0,
    seconds: isWarmUp ? null : (pace ?? null),
  };
}

function findStartSeconds(
  [first]: readonly Played[],
  measured: readonly MeasuredStep[],
  evaluationSeconds: number,
): number {
  const later = measured.flatMap(({ seconds }) => seconds ?? []);
  if (first?.costs === undefined || first.step !== 1 || measured.length < 2 || later.length === 0) return 0;
  const usual = later.reduce((sum, seconds) => sum + seconds, 0) / later.length;
  return Math.max(0, first.costs.seconds - evaluationSeconds - usual);
}

/** The first and the last: a policy learns to answer shorter or longer. */
function edges(steps: readonly number[]): number[] {
  return [...new Set([steps[0], steps.at(-1)])].filter((step) => step !== undefined);
}

export function sumUsage(steps: readonly MeasuredStep[]): Usage {
  return steps.length === 0 ? NO_USAGE : addUsages(steps.map(({ usage }) => usage));
}
