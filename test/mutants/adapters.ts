/** Broken lines of adapters, and of all weights: what scales, drops, begins and skips them. */
import { breaking, type Mutant } from './mutant.ts';

export const ADAPTERS: readonly Mutant[] = [
  ...breaking('gpu-worker/temper_gpu/model/lora.py', 'gpu-worker/tests/training/test_lora_options.py', [
    ['rsLoRA scales as LoRA does', 'math.sqrt(rank) if is_rank_stabilized else rank', 'rank'],
    ['a merge forgets the magnitudes', 'merged if gains_O is None else gains_O[:, None] * merged', 'merged'],
    [
      'beside the weights, magnitudes do not reach W x',
      'None if gains_O is None else (gains_O - 1).to(**like)',
      'None',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/lora_layers.py', 'gpu-worker/tests/training/test_lora_options.py', [
    ['in one node, the gradient of B is not scaled', 'low_MR).mul_(ctx.scale)', 'low_MR)'],
    [
      "DoRA's norms are those of the frozen weights",
      'adapted_norms(self.frozen.weight, self.a_RI, self.b_OR, self._scale)',
      'adapted_norms(self.frozen.weight, self.a_RI, self.b_OR, 0)',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/policy.py', 'gpu-worker/tests/training/test_lora_options.py', [
    ['every step drops the same inputs', 'self._dropout_seed.encode() + ', ''],
    ['every micro-batch drops the same inputs', ' + batch.token_ids_BT.cpu().numpy().tobytes()', ''],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/recomputation.py', 'gpu-worker/tests/training/test_lora_options.py', [
    [
      'computed again, a layer drops other inputs',
      'use_reentrant=False)',
      'use_reentrant=False, preserve_rng_state=False)',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/start.py', 'gpu-worker/tests/training/test_start_adapter.py', [
    ['an adapter of another scale begins a run', 'if _field(given, name) != _field(expected, name)]', 'if False]'],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/step.py', 'gpu-worker/tests/training/test_updates.py', [
    [
      'a loss that pulls tokens without an advantage loses their gradient',
      '        or isinstance(config.loss, DppoLoss)\n',
      '',
    ],
  ]),
  ...breaking('core/numbers/learning-rate.ts', 'test/core/numbers/learning-rate.test.ts', [
    [
      'the last step of a schedule that ends at zero trains nothing',
      'finalLearningRateShare === 0 ? steps + 1 : steps',
      'steps',
    ],
    [
      'a learning rate restarts once too rarely',
      'config.learningRateRestarts + 1',
      'Math.max(config.learningRateRestarts, 1)',
    ],
  ]),
  ...breaking(
    'gpu-worker/temper_gpu/training/full_parameters.py',
    'gpu-worker/tests/training/test_full_fine_tuning.py',
    [
      [
        'below float32, the model computes with the weights before the update',
        'rounded.copy_(self.parameters[name])',
        'pass',
      ],
      [
        'below float32, a micro-batch loses the gradients before it',
        'gradient.to(DTYPE) if before is None else before.add_(gradient)',
        'gradient.to(DTYPE)',
      ],
      [
        'the base model as a reference is the policy itself',
        'return self._in_place(self._plain)',
        'return self._in_place(self.model)',
      ],
    ],
  ),
  ...breaking('gpu-worker/temper_gpu/training/start.py', 'gpu-worker/tests/training/test_full_fine_tuning.py', [
    [
      'a fork trains something else than its parent',
      'if bool(source.full_fine_tuning) != (input.lora is None):',
      'if False:',
    ],
  ]),
  ...breaking(
    'gpu-worker/temper_gpu/engine/embedded/policies.py',
    'gpu-worker/tests/engine/embedded/test_full_policies.py',
    [
      [
        'a policy with weights of its own answers with the base model',
        'self._models[policy] if policy in self._models else self._adapters',
        'self._adapters',
      ],
    ],
  ),
  ...breaking(
    'gpu-worker/temper_gpu/engine/embedded/scheduler.py',
    'gpu-worker/tests/engine/embedded/test_full_policies.py',
    [['policies share passes', 'if sequence.policy == self._turns[-1]]', ']']],
  ),
];
