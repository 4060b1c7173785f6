/** Broken lines of adapters, and of all weights: what scales, drops, begins and skips them. */
import type { Mutant } from './mutant.ts';

const TRAINING = 'gpu-worker/temper_gpu/training';
const TRAINING_TESTS = 'gpu-worker/tests/training';
const LORA = 'gpu-worker/temper_gpu/model/lora.py';
const FULL = `${TRAINING}/full_parameters.py`;
const FULL_TEST = `${TRAINING_TESTS}/test_full_fine_tuning.py`;
const LORA_TEST = `${TRAINING_TESTS}/test_lora_options.py`;

export const ADAPTERS: readonly Mutant[] = [
  {
    name: 'rsLoRA scales as LoRA does',
    file: LORA,
    find: 'math.sqrt(rank) if is_rank_stabilized else rank',
    replace: 'rank',
    test: LORA_TEST,
  },
  {
    name: 'a merge forgets the magnitudes',
    file: LORA,
    find: 'merged if gains_O is None else gains_O[:, None] * merged',
    replace: 'merged',
    test: LORA_TEST,
  },
  {
    name: 'beside the weights, magnitudes do not reach W x',
    file: LORA,
    find: 'None if gains_O is None else (gains_O - 1).to(**like)',
    replace: 'None',
    test: LORA_TEST,
  },
  {
    name: 'in one node, the gradient of B is not scaled',
    file: `${TRAINING}/lora_product.py`,
    find: '(grad_MO.T @ low_MR).mul_(ctx.scale)',
    replace: 'grad_MO.T @ low_MR',
    test: LORA_TEST,
  },
  {
    name: 'every step drops the same inputs',
    file: `${TRAINING}/dropout.py`,
    find: 'f"{seed}/{self._name}"',
    replace: 'f"{self._name}"',
    test: LORA_TEST,
  },
  {
    name: 'in a tree, dropout forgets what a branch begins with',
    file: `${TRAINING}/dropout.py`,
    find: 'np.array(above) - np.array(before)',
    replace: 'np.uint64(0) - np.array(before)',
    test: LORA_TEST,
  },
  {
    name: 'what dropout leaves is not scaled',
    file: `${TRAINING}/dropout.py`,
    find: ' * (1 / (1 - self._share))',
    replace: '',
    test: LORA_TEST,
  },
  {
    name: 'an adapter of another scale begins a run',
    file: `${TRAINING}/start.py`,
    find: 'if _field(given, name) != _field(expected, name)]',
    replace: 'if False]',
    test: `${TRAINING_TESTS}/test_start_adapter.py`,
  },
  {
    name: 'a loss that pulls tokens without an advantage loses their gradient',
    file: `${TRAINING}/step.py`,
    find: '        or isinstance(config.loss, DppoLoss)\n',
    replace: '',
    test: `${TRAINING_TESTS}/test_updates.py`,
  },
  {
    name: 'the last step of a schedule that ends at zero trains nothing',
    file: 'core/plan-learning-rate.ts',
    find: 'finalLearningRateShare === 0 ? steps + 1 : steps',
    replace: 'steps',
    test: 'test/core/plan-learning-rate.test.ts',
  },
  {
    name: 'a learning rate restarts once too rarely',
    file: 'core/plan-learning-rate.ts',
    find: 'config.learningRateRestarts + 1',
    replace: 'Math.max(config.learningRateRestarts, 1)',
    test: 'test/core/plan-learning-rate.test.ts',
  },
  {
    name: 'below float32, the model computes with the weights before the update',
    file: FULL,
    find: 'rounded.copy_(self.parameters[name])',
    replace: 'pass',
    test: FULL_TEST,
  },
  {
    name: 'below float32, a micro-batch loses the gradients before it',
    file: FULL,
    find: 'gradient.to(DTYPE) if before is None else before.add_(gradient)',
    replace: 'gradient.to(DTYPE)',
    test: FULL_TEST,
  },
  {
    name: 'the base model as a reference is the policy itself',
    file: FULL,
    find: 'with self._in_place(*self._plain):',
    replace: 'with self._in_place(self.model, self.last_layer):',
    test: FULL_TEST,
  },
  {
    name: 'a fork trains something else than its parent',
    file: `${TRAINING}/start.py`,
    find: 'if bool(source.full_fine_tuning) != (input.lora is None):',
    replace: 'if False:',
    test: FULL_TEST,
  },
  {
    name: 'a policy with weights of its own answers with the base model',
    file: 'gpu-worker/temper_gpu/engine/embedded/policies.py',
    find: 'self._models[policy] if policy in self._models else self._adapters',
    replace: 'self._adapters',
    test: 'gpu-worker/tests/engine/embedded/test_full_policies.py',
  },
  {
    name: 'policies with weights of their own share passes',
    file: 'gpu-worker/temper_gpu/engine/embedded/policies.py',
    find: 'return key if key in self._models else self._adapters.batch_group(key)',
    replace: 'return self._adapters.batch_group(None)',
    test: 'gpu-worker/tests/engine/embedded/test_full_policies.py',
  },
];
