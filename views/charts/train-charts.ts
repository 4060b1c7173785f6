/** Charts of training metrics: which ones a report draws, and which share a chart. */
import type { StepSummary } from '../../core/contract/contract.ts';
import { costMetrics } from '../../core/rules/costs.ts';
import { chartSteps, valuesOf, type Chart, type ChartPlan, type Line } from './chart.ts';
import { metricWords } from './metric-words.ts';

/** Metric of the trainer, by its name there. */
const trained = (metric: string): Line => ({
  metric,
  label: metricWords(metric),
  value: ({ train }) => train[metric],
});
const counted = (metric: string): Line => ({ ...trained(metric), value: ({ train }) => train[metric] ?? 0 });
/** Steps without this metric leave it out. */
const RARE: readonly string[] = ['staleness', 'histories', 'rewardedTurns', 'oneSidedGroups'];

const SPREAD: ChartPlan = {
  section: 'outcomes',
  title: 'Reward spread',
  note: 'mean, standard deviation, minimum and maximum over the attempts of a step’s trained groups',
  lines: ['rewardMean', 'rewardStd', 'rewardMin', 'rewardMax'].map(trained),
};

const POLICY: readonly ChartPlan[] = [
  alone('policy', { ...trained('heldOutLoss'), style: 'points' }, 'of held-out examples, in nats per token'),
  alone('policy', trained('entropy'), 'nats per sampled token'),
  alone('policy', trained('gradNorm'), 'norm of the gradient before clipping'),
  alone('policy', trained('kl'), 'divergence from the reference, in nats per token'),
  alone('policy', trained('loss'), 'of the step'),
  alone('policy', trained('advantageMass'), 'mean |advantage|'),
  alone('policy', { label: 'learning rate', value: (step) => step.learningRate }, 'of the optimizer'),
];

const K3 = 'k3 of the ratio of trainer and sampler, mean over tokens';

const ATTEMPTS: readonly ChartPlan[] = [
  {
    section: 'attempts',
    title: 'Failed, truncated, replaced',
    note: 'attempts that failed or were truncated, and groups that were replaced, per step',
    lines: [
      { metric: 'failed', label: 'failed', value: (step) => step.failedAttempts },
      {
        metric: 'truncated',
        label: 'truncated',
        value: ({ truncatedAttempts, train }) => truncatedAttempts ?? train['truncated'] ?? 0,
      },
      { metric: 'replaced', label: 'replaced', value: (step) => step.replacedGroups },
    ],
  },
  alone(
    'attempts',
    { label: 'truncated share', value: truncatedShare },
    'of a step’s attempts, replaced and untrained groups included',
  ),
  {
    section: 'attempts',
    title: 'Tokens',
    note: 'of trained groups: sampled, used for training, shared by rows and computed once, computed with padding',
    lines: ['sampledTokens', 'trainedTokens', 'sharedTokens', 'computedTokens'].map(trained),
  },
  alone('attempts', { label: 'masked share', value: maskedShare }, 'of the sampled tokens of trained groups'),
  alone('attempts', trained('forks'), 'rows started because a conversation’s history was rewritten'),
  alone(
    'attempts',
    counted('histories'),
    'rows started by additional conversations of an attempt: sub-agents, compacted contexts',
  ),
  alone('attempts', counted('rewardedTurns'), 'turns with a reward of their own'),
  alone('attempts', counted('oneSidedGroups'), 'groups in which a mask left only attempts on one side of the mean'),
];

/** Costs by step: each line asks for them, several times. */
const knownCosts = new WeakMap<StepSummary, Record<string, number>>();

function costsOf(step: StepSummary): Record<string, number> {
  const costs = knownCosts.get(step) ?? costMetrics(step);
  knownCosts.set(step, costs);
  return costs;
}

const COST: ChartPlan = {
  section: 'time',
  title: 'Cost',
  note: 'US dollars since the step before, by cause; train: judge and hosted models',
  lines: ['gpu', 'train', 'eval'].map((cause) => ({
    label: cause,
    value: (step) => costsOf(step)[`costs/${cause}`],
  })),
};

const MORE_NOTES: Readonly<Record<string, string>> = {
  groups: 'trained groups',
  attempts: 'attempts of trained groups',
  overlong: 'attempts with an overlong answer',
  rows: 'rows of the batch',
  updates: 'optimizer updates of the step',
  heldOutLossBefore: 'before the step, in nats per token',
};

const PHASES = ['rollout', 'rollout.judge', 'judge', 'wait', 'train'] as const;
const TRAINER = 'trainer.';

export interface Constant {
  readonly name: string;
  readonly value: number;
}

/** Metrics that never change get no curve: `constant` has their values. */
export function planTrainCharts(steps: readonly StepSummary[]): { charts: Chart[]; constant: Constant[] } {
  const plans = allPlans(steps);
  const drawn = plans.filter(({ lines }) => lines.some((line) => varies(line, steps)));
  const still = plans.filter((plan) => !drawn.includes(plan)).flatMap(({ lines }) => lines);
  return {
    charts: drawn.map((plan) => chartSteps(plan, steps)),
    constant: still.flatMap((line) => [...distinct(line, steps)].map((value) => ({ name: line.label, value }))),
  };
}

/** Ends at the first difference: a run has thousands of steps and dozens of lines. */
function varies({ value }: Line, steps: readonly StepSummary[]): boolean {
  let first: number | null = null;
  for (const step of steps) {
    const here = value(step) ?? null;
    if (first === null) first = here;
    else if (here !== null && here !== first) return true;
  }
  return false;
}

function distinct(line: Line, steps: readonly StepSummary[]): Set<number> {
  return new Set(valuesOf(line, steps).flatMap((value) => value ?? []));
}

function allPlans(steps: readonly StepSummary[]): ChartPlan[] {
  const all = new Set(steps.flatMap(({ train }) => Object.keys(train)));
  const names = [...all].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const plans = [SPREAD, ...POLICY, ...mismatchPlans(names), ...ATTEMPTS];
  const claimed = new Set(plans.flatMap(({ lines }) => lines.map(({ metric }) => metric)));
  const others = names.filter((name) => !claimed.has(name));
  const more = others.map((name) => alone('more', trained(name), MORE_NOTES[name] ?? 'reported by the trainer'));
  const isKnown = ({ lines }: ChartPlan) =>
    lines.every(({ metric = '' }) => !RARE.includes(metric) || names.includes(metric));
  return [...plans.filter(isKnown), ...timePlans(steps), COST, ...more];
}

/** One line per pass: how far the policy has moved by then. */
function mismatchPlans(names: readonly string[]): ChartPlan[] {
  const ofPasses = (end: string) =>
    names.filter((name) => name.startsWith('pass') && name.endsWith(end)).map((name) => trained(name));
  const section = 'mismatch';
  return [
    alone(section, trained('logprobK3'), `${K3}, before the first update; 0 is an exact match`),
    { section, title: 'Ratio by pass', note: `${K3}, in each pass over the batch`, lines: ofPasses('RatioK3') },
    {
      section,
      title: metricWords('maxAbsLogRatio'),
      note: 'largest |log ratio| of trainer and sampler, before the first update and in each pass',
      lines: [trained('maxAbsLogRatio'), ...ofPasses('MaxAbsLogRatio')],
    },
    {
      section,
      title: metricWords('clippedShare'),
      note: 'share of tokens whose ratio was clipped, in all updates and in each pass',
      lines: [trained('clippedShare'), ...ofPasses('ClippedShare')],
    },
    alone(section, trained('correctedShare'), 'share of tokens that a correction truncated or left out'),
    alone(section, counted('staleness'), 'optimizer steps between the sampler and the policy that was trained'),
  ];
}

function timePlans(steps: readonly StepSummary[]): ChartPlan[] {
  const names = [...new Set(steps.flatMap(({ seconds }) => Object.keys(seconds)))];
  const others = names.filter((name) => !PHASES.some((phase) => phase === name) && name !== 'step');
  const seconds = (name: string): Line => ({ label: name, value: (step) => step.seconds[name] });
  const [ofTrainer, ofRun] = [true, false].map((is) => others.filter((name) => name.startsWith(TRAINER) === is));
  return [
    {
      section: 'time',
      title: 'Seconds',
      note: 'where a step’s wall time goes: phases of the run, and the whole step',
      lines: [...PHASES, ...ofRun!, 'step'].map(seconds),
    },
    {
      section: 'time',
      title: 'Seconds of the trainer',
      note: 'what the phase train consists of',
      lines: ofTrainer!.map(seconds),
    },
    alone('time', { label: 'tokens/s', value: tokensPerSecond }, 'sampled tokens per second of a step'),
  ];
}

function alone(section: ChartPlan['section'], line: Line, note: string): ChartPlan {
  return { section, title: line.label, note, lines: [line] };
}

function maskedShare({ train: { sampledTokens, trainedTokens } }: StepSummary): number | null {
  return sampledTokens && typeof trainedTokens === 'number' ? 1 - trainedTokens / sampledTokens : null;
}

function truncatedShare({ truncatedAttempts = 0, attempts }: StepSummary): number | null {
  return attempts === 0 ? null : truncatedAttempts / attempts;
}

function tokensPerSecond({ sampledTokens, seconds: { step } }: StepSummary): number | null {
  return step ? sampledTokens / step : null;
}
