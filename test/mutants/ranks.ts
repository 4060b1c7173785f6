/** Broken lines of steps that several ranks compute. */
import type { Mutant } from './mutant.ts';

const TRAINING = 'gpu-worker/temper_gpu/training';
const RANKS_TEST = 'gpu-worker/tests/training/test_ranks.py';

export const RANKS: readonly Mutant[] = [
  {
    name: "sums of ranks are made from the last one's part on",
    file: `${TRAINING}/ranks/joined.py`,
    find: 'reduce(torch.add, self.gather(tensor))',
    replace: 'reduce(torch.add, self.gather(tensor)[::-1])',
    test: RANKS_TEST,
  },
  {
    name: "only this rank's part is added",
    file: `${TRAINING}/ranks/joined.py`,
    find: 'return reduce(torch.add, self.gather(tensor))',
    replace: 'return self.gather(tensor)[self.rank]',
    test: RANKS_TEST,
  },
  {
    name: 'other ranks keep the adapter of the update before',
    file: `${TRAINING}/policy.py`,
    find: 'self.ranks.broadcast(self.parameters.values())',
    replace: 'pass',
    test: RANKS_TEST,
  },
  {
    name: 'a rank may have nothing to compute',
    file: `${TRAINING}/tokens.py`,
    find: 'while len(batches) < min(layout.num_ranks, len(rows))',
    replace: 'while len(batches) < 1',
    test: 'gpu-worker/tests/training/test_turns.py',
  },
  {
    name: "examples are trained by the first rank's share alone",
    file: `${TRAINING}/supervised.py`,
    find: '    policy.add_gradients()\n',
    replace: '',
    test: 'gpu-worker/tests/training/test_supervised.py',
  },
  {
    name: 'each rank has all layers, where the base model is sharded',
    file: `${TRAINING}/sharding.py`,
    find: '                shard(layer)\n',
    replace: '                incoming.place(layer)\n',
    test: RANKS_TEST,
  },
  {
    name: 'a pass for other ranks takes the gradient away',
    file: `${TRAINING}/policy.py`,
    find: '            parameter.grad = gradient\n',
    replace: '            pass\n',
    test: RANKS_TEST,
  },
  {
    name: 'a pass for other ranks counts',
    file: `${TRAINING}/step.py`,
    find: '        if turn.counts:\n            log_ratio_N',
    replace: '        if True:\n            log_ratio_N',
    test: RANKS_TEST,
  },
];
