/** Warnings about the newest steps, with remedies: the same in `show`, live view, report and Temporal's UI. Pure. */
import type { EvalResult, StepSummary } from '../contract/contract.ts';
import { headline } from './format.ts';
import { LEARNED_RATE, warnOfEvaluations, type EvaluationWarning } from './evaluation-warnings.ts';
import { countSkipped, isSkipped, warnOfSkips } from './learning-signal.ts';
import { mean } from '../numbers/statistics.ts';

export interface TrainingWarning {
  readonly kind:
    | EvaluationWarning['kind']
    | 'no-variance'
    | 'entropy'
    | 'drift'
    | 'mismatch'
    | 'truncation'
    | 'row-by-row'
    | 'unused-role';
  readonly text: string;
}

/** Trained steps in a row that must be beyond a threshold: a single one may be noise. */
export const WARNED_STEPS = 3;
/** They are looked for among the newest ones: a workflow carries no more. */
export const WATCHED_STEPS = 10;
/** Smallest share of the first steps' entropy that must remain. */
const LEAST_ENTROPY_SHARE = 0.1;
/** Largest k3 between policy and sampler: at 0.05 ratios are off by a third, about where the losses clip. */
const MOST_DRIFT = 0.05;
/** The same with equal weights: half of what ends a run by default, or of what a step says that ends it. */
export const MOST_MISMATCH = 5e-4;
const MISMATCH_SHARE = 0.5;
/** Largest share of a step's attempts that may be truncated. */
const MOST_TRUNCATED_SHARE = 0.2;

type Observed = Pick<
  StepSummary,
  'step' | 'train' | 'groups' | 'examples' | 'unused' | 'attempts' | 'truncatedAttempts' | 'reward'
> &
  Partial<Pick<StepSummary, 'metrics'>>;

export interface EntropyOfStep {
  readonly step: number;
  readonly entropy: number;
}

/** Entropies of the first steps that trained groups, to compare later ones with. */
export function entropiesAtStart(steps: readonly Pick<Observed, 'step' | 'train' | 'examples'>[]): EntropyOfStep[] {
  const found: EntropyOfStep[] = [];
  for (const { step, train, examples } of steps) {
    if (found.length === WARNED_STEPS) break;
    const { entropy } = train;
    if (examples === undefined && typeof entropy === 'number') found.push({ step, entropy });
  }
  return found;
}

/** Held-out results come first. `first`: of the run's first steps, where `steps` are its newest ones alone. */
export function warnOfTraining(
  steps: readonly Observed[],
  evals: readonly EvalResult[] = [],
  first = entropiesAtStart(steps),
): TrainingWarning[] {
  const watched = steps.slice(-WATCHED_STEPS);
  const learned = isLearned(steps, evals);
  const trained = watched.filter((step) => !isSkipped(step) && step.examples === undefined);
  const lasting = (text: (newest: readonly Observed[]) => string | null): string | null =>
    trained.length < WARNED_STEPS ? null : text(trained.slice(-WARNED_STEPS));
  const found: [TrainingWarning['kind'], string | null][] = [
    [
      'no-variance',
      watched.length === 0 || (learned && isEven(watched.at(-1)!))
        ? null
        : warnOfSkips(countSkipped(steps), watched.at(-1)!, evals.at(-1)),
    ],
    ['entropy', learned ? null : lasting((newest) => warnOfEntropy(newest, first))],
    ['drift', lasting(warnOfDrift)],
    ['mismatch', lasting(warnOfMismatch)],
    ['truncation', lasting(warnOfTruncation)],
    ['row-by-row', warnOfRows(watched)],
    ['unused-role', lasting(warnOfUnusedRole)],
  ];
  return [...warnOfEvaluations(evals), ...found.flatMap(([kind, text]) => (text === null ? [] : [{ kind, text }]))];
}

/** Groups of equal rewards and low entropy are where learning ends, and no fault. By the newest evaluation if it belongs to the newest steps, else by what these earn. Only the agent's author knows the best reward, so it takes a success rate. */
export function isLearned(steps: readonly Observed[], evals: readonly EvalResult[]): boolean {
  const watched = steps.slice(-WATCHED_STEPS);
  const after = Math.max(0, (watched[0]?.step ?? 0) - 1);
  const evaluation = evals.findLast(({ step }) => step > after);
  const rates = (evaluation === undefined ? watched : [evaluation]).flatMap(({ reward, metrics = {} }) => {
    const { label, value } = headline({ reward, metrics });
    return label === 'reward' || value === null ? [] : [value];
  });
  return (mean(rates) ?? 0) >= LEARNED_RATE;
}

const isEven = ({ unused }: Observed): boolean => Object.keys(unused).every((reason) => reason === 'no-variance');

/** Warnings that begin with the last step: none is repeated at each step that it lasts. */
export function warnOfLastStep(steps: readonly Observed[], evals: readonly EvalResult[] = []): TrainingWarning[] {
  const known = new Set(warnOfTraining(steps.slice(0, -1), evals).map(({ kind }) => kind));
  return warnOfTraining(steps, evals).filter(({ kind }) => !known.has(kind));
}

/** Those that begin with the last evaluation. */
export function warnOfLastEvaluation(evals: readonly EvalResult[]): EvaluationWarning[] {
  const known = new Set(warnOfEvaluations(evals.slice(0, -1)).map(({ kind }) => kind));
  return warnOfEvaluations(evals).filter(({ kind }) => !known.has(kind));
}

function warnOfEntropy(newest: readonly Observed[], first: readonly EntropyOfStep[]): string | null {
  const before = mean(first.map(({ entropy }) => entropy));
  const entropies = newest.map(({ train }) => train['entropy'] ?? null);
  if (before === null || !areAll(entropies, (entropy) => entropy < LEAST_ENTROPY_SHARE * before)) return null;
  return `entropy fell to ${entropies.at(-1)!.toFixed(3)} nats per token, from ${before.toFixed(3)} in the first steps: attempts become the same, and new answers are no longer found; lower --learning-rate, raise --entropy-coefficient or --temperature`;
}

/** Warns if later steps or earlier passes update the policy between sampling and training. */
function warnOfDrift(newest: readonly Observed[]): string | null {
  const drifts = newest.map(({ train }) => driftOf(train));
  if (!areAll(drifts, (drift) => drift > MOST_DRIFT)) return null;
  const isStale = newest.some(({ train }) => train['staleness'] !== undefined);
  return `the policy drifts from what sampled its attempts (k3 of the ratio ${drifts.at(-1)!.toFixed(3)}, at most ${MOST_DRIFT} is usual): losses clip, and old samples mislead; lower --learning-rate, --passes${isStale ? ', --mini-batches or --max-staleness' : ' or --mini-batches'}`;
}

function driftOf(train: Observed['train']): number | null {
  const ofPasses = Object.keys(train).filter((name) => /^pass\d+RatioK3$/.test(name));
  const names = train['staleness'] === undefined ? ofPasses : [...ofPasses, 'logprobK3'];
  const drifts = names.map((name) => train[name]).filter((value) => typeof value === 'number');
  return drifts.length === 0 ? null : Math.max(...drifts);
}

/** Warns if sampler and trainer have the same weights but differ, and nothing corrects for it. */
function warnOfMismatch(newest: readonly Observed[]): string | null {
  const comparable = ({ train }: Observed) => train['staleness'] === undefined && train['correctedShare'] === undefined;
  const found = newest.map((step) => (comparable(step) ? (step.train['logprobK3'] ?? null) : null));
  const most = newest.at(-1)?.train['mostLogprobK3'];
  const usual = typeof most === 'number' ? MISMATCH_SHARE * most : MOST_MISMATCH;
  if (!areAll(found, (mismatch) => mismatch > usual)) return null;
  return `sampler and trainer differ with the same weights (k3 ${found.at(-1)!.toExponential(1)}): a run ends above --max-logprob-mismatch; set --correction token-truncate, or the same --dtype for both`;
}

function warnOfTruncation(newest: readonly Observed[]): string | null {
  const shares = newest.map(truncatedShare);
  if (!areAll(shares, (share) => share > MOST_TRUNCATED_SHARE)) return null;
  return `${(100 * shares.at(-1)!).toFixed(0)} % of the attempts were truncated: what they did is not learned from, or wrongly; raise max_tokens of the calls (--max-tokens where they set none), shorten the prompts, or use --truncated penalise`;
}

/** It lasts as long as the run does: the newest step that trained anything says it. */
function warnOfRows(watched: readonly Observed[]): string | null {
  if (!watched.findLast((step) => !isSkipped(step))?.train['packedAsRows']) return null;
  return 'the base model does not compute shared prefixes once, so each row of a step is trained separately: the results are the same, but steps take more time and memory; use a base model of another family, or set --packing rows in new runs to hide this warning';
}

const ROLE_CALLS = /^calls\/([a-z0-9][a-z0-9_-]*)$/;

function warnOfUnusedRole(newest: readonly Observed[]): string | null {
  const names = Object.keys(newest.at(-1)?.metrics ?? {}).filter((name) => ROLE_CALLS.test(name));
  const unused = names.find((name) => newest.every(({ metrics }) => metrics?.[name] === 0));
  if (unused === undefined) return null;
  const [, role] = ROLE_CALLS.exec(unused)!;
  return `the role ${role} was not called in ${newest.length} steps, so nothing of it is trained; call roles.${role} in the rollout, or remove the role`;
}

/** Steps that were recorded without the count tell it of the groups that they trained. */
function truncatedShare({ truncatedAttempts, attempts, train }: Observed): number {
  if (truncatedAttempts !== undefined) return truncatedAttempts / Math.max(1, attempts);
  return (train['truncated'] ?? 0) / Math.max(1, train['attempts'] ?? attempts);
}

function areAll(values: readonly (number | null)[], isBeyond: (value: number) => boolean): values is number[] {
  return values.every((value) => value !== null && isBeyond(value));
}
