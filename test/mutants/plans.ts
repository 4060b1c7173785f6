import type { Mutant } from './mutant.ts';

export const PLANS: readonly Mutant[] = [
  {
    name: 'an epoch begins only with a new step',
    file: 'core/plan-deal.ts',
    find: 'Math.floor((from + offset) / scenarios)',
    replace: 'Math.floor(from / scenarios)',
    test: 'test/core/plan-deal.test.ts',
  },
  {
    name: 'no value of a permutation keeps its place',
    file: 'core/plan-deal.ts',
    find: 'random() * (last + 1)',
    replace: 'random() * last',
    test: 'test/core/plan-deal.test.ts',
  },
  {
    name: 'linear schedules end at zero',
    file: 'core/plan-learning-rate.ts',
    find: '1 - (1 - final) * done',
    replace: '1 - done',
    test: 'test/core/plan-learning-rate.test.ts',
  },
  {
    name: 'groups are trained in the order in which they were played',
    file: 'core/plan-step.ts',
    find: ".filter((group) => group.use === 'trained').toSorted(inPlanOrder)",
    replace: ".filter((group) => group.use === 'trained')",
    test: 'test/core/plan-step.test.ts',
  },
  {
    name: 'entropy is compared with the newest steps alone',
    file: 'core/training-warnings.ts',
    find: 'warnOfEntropy(newest, first)',
    replace: 'warnOfEntropy(newest, entropiesAtStart(newest))',
    test: 'test/core/training-warnings.test.ts',
  },
  {
    name: 'skipped steps in a row are not counted',
    file: 'core/plan-step.ts',
    find: 'position.emptySteps + 1 : 0',
    replace: '1 : 0',
    test: 'test/core/plan-step.test.ts',
  },
];
