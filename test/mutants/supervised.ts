/** Broken lines of supervised steps. */
import type { Mutant } from './mutant.ts';

const TRAINING = 'gpu-worker/temper_gpu/training';
const SUPERVISED_TEST = 'gpu-worker/tests/training/test_supervised.py';
const PLAN_TEST = 'test/core/plan-supervised.test.ts';

export const SUPERVISED: readonly Mutant[] = [
  {
    name: 'the cross-entropy is not weighed',
    file: `${TRAINING}/losses/cross_entropy.py`,
    find: 'return -weights_N * logprobs_N',
    replace: 'return -logprobs_N',
    test: SUPERVISED_TEST,
  },
  {
    name: 'an example above the limit is trained',
    file: `${TRAINING}/examples.py`,
    find: 'return [] if rendering.overlong == "mask"',
    replace: 'return rows if rendering.overlong == "mask"',
    test: SUPERVISED_TEST,
  },
  {
    name: 'what stands after the end of a turn is trained',
    file: 'gpu-worker/temper_gpu/server/chat_turns.py',
    find: 'return prompt_ids, ids[: end + 1]',
    replace: 'return prompt_ids, ids',
    test: 'gpu-worker/tests/server/test_chat_turns.py',
  },
  {
    name: 'held-out examples are trained',
    file: 'core/plan-supervised.ts',
    find: 'train: all.filter((index) => !drawn.has(index))',
    replace: 'train: all',
    test: PLAN_TEST,
  },
  {
    name: 'every step trains the same examples',
    file: 'core/plan-supervised.ts',
    find: 'last * examplesPerStep, examplesPerStep',
    replace: '0, examplesPerStep',
    test: PLAN_TEST,
  },
];
