/** Broken lines of steps that several ranks compute. */
import { breaking, type Mutant } from './mutant.ts';

export const RANKS: readonly Mutant[] = [
  ...breaking('gpu-worker/temper_gpu/training/ranks/joined.py', 'gpu-worker/tests/training/test_ranks.py', [
    [
      "sums of ranks are made from the last one's part on",
      'reduce(torch.add, self.gather(tensor))',
      'reduce(torch.add, self.gather(tensor)[::-1])',
    ],
    [
      "only this rank's part is added",
      'return reduce(torch.add, self.gather(tensor))',
      'return self.gather(tensor)[self.rank]',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/policy.py', 'gpu-worker/tests/training/test_ranks.py', [
    ['other ranks keep the adapter of the update before', 'self.ranks.broadcast(self.parameters.values())', 'pass'],
    ['a pass for other ranks takes the gradient away', '            parameter.grad = gradient\n', '            pass\n'],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/tokens.py', 'gpu-worker/tests/training/test_turns.py', [
    [
      'a rank may have nothing to compute',
      'while len(batches) < min(layout.num_ranks, len(rows))',
      'while len(batches) < 1',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/supervised.py', 'gpu-worker/tests/training/test_supervised.py', [
    ["examples are trained by the first rank's share alone", '    policy.add_gradients()\n', ''],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/sharding.py', 'gpu-worker/tests/training/test_ranks.py', [
    [
      'each rank has all layers, where the base model is sharded',
      '                shard(layer)\n',
      '                incoming.place(layer)\n',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/step.py', 'gpu-worker/tests/training/test_ranks.py', [
    [
      'a pass for other ranks counts',
      '        if turn.counts:\n            log_ratio_N',
      '        if True:\n            log_ratio_N',
    ],
  ]),
];
