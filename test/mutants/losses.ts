/** Broken lines of losses, weights and updates. */
import type { Mutant } from './mutant.ts';

const TRAINING = 'gpu-worker/temper_gpu/training';
const TRAINING_TESTS = 'gpu-worker/tests/training';

export const LOSSES: readonly Mutant[] = [
  {
    name: "cispo's weight has a gradient of its own",
    file: `${TRAINING}/losses/policy_gradient.py`,
    find: '(logprobs_N.detach() - batch.sampled_logprobs_N)',
    replace: '(logprobs_N - batch.sampled_logprobs_N)',
    test: `${TRAINING_TESTS}/test_losses.py`,
  },
  {
    name: 'ppo takes the better of both surrogates',
    file: `${TRAINING}/losses/policy_gradient.py`,
    find: 'objective_N = minimum(unclipped_N, clipped_N)',
    replace: 'objective_N = maximum(unclipped_N, clipped_N)',
    test: `${TRAINING_TESTS}/test_losses.py`,
  },
  {
    name: 'dual clip bounds positive advantages',
    file: `${TRAINING}/losses/policy_gradient.py`,
    find: 'where(advantages_N < 0, dual_clip * advantages_N',
    replace: 'where(advantages_N > 0, dual_clip * advantages_N',
    test: `${TRAINING_TESTS}/test_losses.py`,
  },
  {
    name: "gspo sums a sequence's log ratios",
    file: `${TRAINING}/losses/sequence.py`,
    find: '(sums_S / sizes_S.clamp(min=1))',
    replace: 'sums_S',
    test: `${TRAINING_TESTS}/test_losses.py`,
  },
  {
    name: 'dppo masks what comes back into the region',
    file: `${TRAINING}/losses/policy_gradient.py`,
    find: '(shift_N * batch.weighted_advantages_N.sign()) > config.max_shift',
    replace: 'shift_N.abs() > config.max_shift',
    test: `${TRAINING_TESTS}/test_losses.py`,
  },
  {
    name: 'the gate of sapo has one temperature',
    file: `${TRAINING}/losses/policy_gradient.py`,
    find: 'where(advantages_N > 0, config.tau_positive, config.tau_negative)',
    replace: 'torch.full_like(advantages_N, config.tau_positive)',
    test: `${TRAINING_TESTS}/test_losses.py`,
  },
  {
    name: 'masked tokens stay in the denominator',
    file: `${TRAINING}/losses/reductions.py`,
    find: 'return kept_F / sizes_K.sum().clamp(min=1)',
    replace: 'return kept_F / len(kept_F)',
    test: `${TRAINING_TESTS}/test_reductions.py`,
  },
  {
    name: 'a correction that weighs leaves the ratio against the sampler',
    file: `${TRAINING}/tokens.py`,
    find: 'scored_F if correction.is_weighing else self.anchors_F',
    replace: 'self.anchors_F',
    test: `${TRAINING_TESTS}/test_corrections.py`,
  },
  {
    name: 'all passes take the groups in one order',
    file: `${TRAINING}/updates.py`,
    find: 'f"{seed}/{number}"',
    replace: 'f"{seed}"',
    test: `${TRAINING_TESTS}/test_updates.py`,
  },
  {
    name: 'rounding is reported as clipping',
    file: `${TRAINING}/losses/policy_gradient.py`,
    find: 'ROUNDING = 1e-3',
    replace: 'ROUNDING = 0.0',
    test: `${TRAINING_TESTS}/test_step_by_hand.py`,
  },
  {
    name: 'the off-policy mask leaves out what is better than its group',
    file: `${TRAINING}/corrections.py`,
    find: '((-means_F).exp() <= cap) | (advantages_F >= 0)',
    replace: '((-means_F).exp() <= cap)',
    test: `${TRAINING_TESTS}/test_corrections.py`,
  },
  {
    name: "an older sampler is compared with its parent's weights",
    file: `${TRAINING}/step.py`,
    find: 'policy.with_adapter(sampler.adapter)',
    replace: 'policy.with_adapter(policy.adapter_tensors())',
    test: `${TRAINING_TESTS}/test_stale_sampler.py`,
  },
  {
    name: "the sampler's weights stay after the comparison",
    file: `${TRAINING}/lora_parameters.py`,
    find: '            self._lay_in(own)',
    replace: '            pass',
    test: `${TRAINING_TESTS}/test_stale_sampler.py`,
  },
  {
    name: 'the reference is the base model, whatever the plan names',
    file: `${TRAINING}/step.py`,
    find: 'policy.without_adapter() if reference is None else policy.with_adapter(reference)',
    replace: 'policy.without_adapter()',
    test: `${TRAINING_TESTS}/test_reference.py`,
  },
  {
    name: "another run's reference is pruned",
    file: 'store/records/prune.ts',
    find: 'references.set(sha256, run)',
    replace: 'references.delete(run)',
    test: 'test/store/records/reference.test.ts',
  },
  {
    name: 'a run is copied without its reference',
    file: 'store/records/copy/contents.ts',
    find: '[] : [file.config.train.klReference]',
    replace: '[] : []',
    test: 'test/store/records/reference.test.ts',
  },
  {
    name: 'a step does not name its sampler',
    file: 'core/plan-step.ts',
    find: 'return staleness === 0 ? {}',
    replace: 'return staleness >= 0 ? {}',
    test: 'test/core/plan-step.test.ts',
  },
  {
    name: 'a step samples from the newest checkpoint, whatever its plan',
    file: 'core/plan-step.ts',
    find: 'policies: [...(position.upcoming ?? []), newest]',
    replace: 'policies: [newest, ...(position.upcoming ?? [])]',
    test: 'test/core/plan-step.test.ts',
  },
];
