/** Counters of a run's recorded steps: sums over the lines of its curve, so that a repeated activity counts once. */
import { GroupResult, type StepSummary } from '../../core/contract/contract.ts';
import { isSkipped } from '../../core/reports/learning-signal.ts';

export interface StepCounter {
  readonly name: string;
  readonly help: string;
  /** Null: it has no label of its own. */
  readonly label: string | null;
  /** Amounts of one step, by the label's value. */
  readonly of: (step: StepSummary) => readonly (readonly [string, number])[];
}

export const ATTEMPTS: StepCounter = {
  name: 'attempts',
  help: 'Attempts by outcome; failed ones have no reward.',
  label: 'outcome',
  of: ({ attempts, failedAttempts: failed, truncatedAttempts: truncated = 0 }) => [
    ['completed', Math.max(0, attempts - failed - truncated)],
    ['failed', failed],
    ['truncated', truncated],
  ],
};

export const GROUPS: StepCounter = {
  name: 'groups',
  help: 'Groups by use: trained, or why not.',
  label: 'use',
  of: ({ groups, unused }) =>
    GroupResult.shape.use.options.map((use) => [use, use === 'trained' ? groups : (unused[use] ?? 0)]),
};

const TRAINER = 'trainer.';

/** Each is `temper_run_…_total`. */
export const STEP_COUNTERS: readonly StepCounter[] = [
  {
    name: 'steps',
    help: 'Recorded steps of all branches, by outcome.',
    label: 'outcome',
    of: (step) => [
      ['trained', isSkipped(step) ? 0 : 1],
      ['skipped', isSkipped(step) ? 1 : 0],
    ],
  },
  ATTEMPTS,
  GROUPS,
  {
    name: 'replaced_groups',
    help: 'Groups played in place of groups without a learning signal.',
    label: null,
    of: ({ replacedGroups }) => [['', replacedGroups]],
  },
  {
    name: 'examples',
    help: 'Examples of supervised steps.',
    label: null,
    of: ({ examples = 0 }) => [['', examples]],
  },
  {
    name: 'sampled_tokens',
    help: 'Tokens that the policy sampled in attempts.',
    label: null,
    of: ({ sampledTokens }) => [['', sampledTokens]],
  },
  {
    name: 'trained_tokens',
    help: 'Sampled tokens that were trained.',
    label: null,
    of: ({ train }) => [['', train['trainedTokens'] ?? 0]],
  },
  {
    name: 'step_seconds',
    help: 'Time of steps by phase; overlapping phases count twice.',
    label: 'phase',
    of: ({ seconds }) => Object.entries(seconds).filter(([phase]) => phase !== 'step' && !phase.includes('.')),
  },
  {
    name: 'trainer_seconds',
    help: 'Time of the trainer in steps, by phase.',
    label: 'phase',
    of: ({ seconds }) =>
      Object.entries(seconds)
        .filter(([phase]) => phase.startsWith(TRAINER))
        .map(([phase, amount]) => [phase.slice(TRAINER.length), amount]),
  },
];

/** Sums by the name of a counter, then by its label's value. */
export type Totals = ReadonlyMap<string, ReadonlyMap<string, number>>;

export function sumSteps(steps: readonly StepSummary[], counters: readonly StepCounter[]): Totals {
  return new Map(counters.map(({ name, of }) => [name, sumPairs(steps.flatMap(of))]));
}

export function addTotals(all: readonly Totals[], counters: readonly StepCounter[]): Totals {
  return new Map(counters.map(({ name }) => [name, sumPairs(all.flatMap((of) => [...(of.get(name) ?? [])]))]));
}

function sumPairs(pairs: readonly (readonly [string, number])[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [value, amount] of pairs) sums.set(value, (sums.get(value) ?? 0) + amount);
  return sums;
}
