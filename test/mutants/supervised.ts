/** Broken lines of supervised steps. */
import { breaking, type Mutant } from './mutant.ts';

export const SUPERVISED: readonly Mutant[] = [
  ...breaking('gpu-worker/temper_gpu/training/losses/regularisers.py', 'gpu-worker/tests/training/test_supervised.py', [
    ['the cross-entropy is not weighed', 'return -weights_N * logprobs_N', 'return -logprobs_N'],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/examples.py', 'gpu-worker/tests/training/test_supervised.py', [
    [
      'an example above the limit is trained',
      'return [] if rendering.overlong == "mask"',
      'return rows if rendering.overlong == "mask"',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/server/chat_turns.py', 'gpu-worker/tests/server/test_chat_turns.py', [
    ['what stands after the end of a turn is trained', 'return prompt_ids, ids[: end + 1]', 'return prompt_ids, ids'],
  ]),
  ...breaking('core/plan/supervised.ts', 'test/core/plan/supervised.test.ts', [
    ['held-out examples are trained', 'train: all.filter((index) => !drawn.has(index))', 'train: all'],
    ['every step trains the same examples', 'last * examplesPerStep, examplesPerStep', '0, examplesPerStep'],
  ]),
];
