import { breaking, type Mutant } from './mutant.ts';

export const PLANS: readonly Mutant[] = [
  ...breaking('core/plan/deal.ts', 'test/core/plan/deal.test.ts', [
    ['an epoch begins only with a new step', 'Math.floor((from + offset) / scenarios)', 'Math.floor(from / scenarios)'],
    ['no value of a permutation keeps its place', 'random() * (last + 1)', 'random() * last'],
  ]),
  ...breaking('core/numbers/learning-rate.ts', 'test/core/numbers/learning-rate.test.ts', [
    ['linear schedules end at zero', '1 - (1 - final) * done', '1 - done'],
  ]),
  ...breaking('core/plan/step.ts', 'test/core/plan/step.test.ts', [
    [
      'groups are trained in the order in which they were played',
      ".filter((group) => group.use === 'trained').toSorted(inPlanOrder)",
      ".filter((group) => group.use === 'trained')",
    ],
  ]),
  ...breaking('core/plan/window.ts', 'test/core/plan/step.test.ts', [
    ['skipped steps in a row are not counted', 'position.emptySteps + 1 : 0', '1 : 0'],
  ]),
  ...breaking('core/reports/training-warnings.ts', 'test/core/reports/training-warnings.test.ts', [
    [
      'entropy is compared with the newest steps alone',
      'warnOfEntropy(newest, first)',
      'warnOfEntropy(newest, entropiesAtStart(newest))',
    ],
  ]),
];
