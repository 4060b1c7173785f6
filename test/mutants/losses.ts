/** Broken lines of losses, weights and updates. */
import { breaking, type Mutant } from './mutant.ts';

export const LOSSES: readonly Mutant[] = [
  ...breaking('gpu-worker/temper_gpu/training/step.py', 'gpu-worker/tests/training/test_step_by_hand.py', [
    ['no scale divides advantages', '(config.advantage_scale, config.leave_one_out,', "('none', config.leave_one_out,"],
    [
      'an attempt is compared with itself, too',
      '(config.advantage_scale, config.leave_one_out,',
      '(config.advantage_scale, False,',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/packing/packer.py', 'gpu-worker/tests/training/test_trees.py', [
    [
      'tokens of a tree get the weights of others',
      'scored_at_once=at_once)',
      'scored_at_once=at_once, places_N=lay_trees(rows, part, weight, device).places_N.sort().values)',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/losses/policy_gradient.py', 'gpu-worker/tests/training/test_losses.py', [
    [
      "cispo's weight has a gradient of its own",
      'bounded_ratio(logprobs_N.detach() - batch.sampled_logprobs_N)',
      'bounded_ratio(logprobs_N - batch.sampled_logprobs_N)',
    ],
    [
      'ppo takes the better of both surrogates',
      'objective_N = minimum(unclipped_N, clipped_N)',
      'objective_N = maximum(unclipped_N, clipped_N)',
    ],
    [
      'dual clip bounds positive advantages',
      'where(advantages_N < 0, dual_clip * advantages_N',
      'where(advantages_N > 0, dual_clip * advantages_N',
    ],
    [
      'dppo masks what comes back into the region',
      '(shift_N * batch.weighted_advantages_N.sign()) > config.max_shift',
      'shift_N.abs() > config.max_shift',
    ],
    [
      'the gate of sapo has one temperature',
      'where(advantages_N > 0, config.tau_positive, config.tau_negative)',
      'torch.full_like(advantages_N, config.tau_positive)',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/losses/policy_gradient.py', 'gpu-worker/tests/training/test_losses.py', [
    ["gspo sums a sequence's log ratios", '(sums_S / sizes_S.clamp(min=1))', 'sums_S'],
    [
      "gspo moves each token by its row's mean advantage",
      '(logprobs_N - logprobs_N.detach()).exp()',
      'sequence_means(logprobs_N - logprobs_N.detach(), batch).exp()',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/losses/loss.py', 'gpu-worker/tests/training/test_losses.py', [
    ['ratios are not bounded', 'log_ratio_N.clamp(-most, most).exp()', 'log_ratio_N.exp()'],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/losses/loss.py', 'gpu-worker/tests/training/test_reductions.py', [
    [
      'masked tokens stay in the denominator',
      'return kept_F / sizes_K.sum().clamp(min=1)',
      'return kept_F / len(kept_F)',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/tokens.py', 'gpu-worker/tests/training/test_corrections.py', [
    [
      'a correction that weighs leaves the ratio against the sampler',
      'scored_F if correction.is_weighing else self.anchors_F',
      'self.anchors_F',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/updates.py', 'gpu-worker/tests/training/test_updates.py', [
    ['all passes take the groups in one order', 'f"{seed}/{number}"', 'f"{seed}"'],
  ]),
  ...breaking(
    'gpu-worker/temper_gpu/training/losses/policy_gradient.py',
    'gpu-worker/tests/training/test_step_by_hand.py',
    [['rounding is reported as clipping', 'ROUNDING = 1e-3', 'ROUNDING = 0.0']],
  ),
  ...breaking('gpu-worker/temper_gpu/training/corrections.py', 'gpu-worker/tests/training/test_corrections.py', [
    [
      'the off-policy mask leaves out what is better than its group',
      '((-means_F).exp() <= cap) | (advantages_F >= 0)',
      '((-means_F).exp() <= cap)',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/scoring.py', 'gpu-worker/tests/training/test_samplers.py', [
    [
      "an older sampler is compared with its parent's weights",
      'policy.with_adapter(read())',
      'policy.with_adapter(policy.adapter_tensors())',
    ],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/lora_parameters.py', 'gpu-worker/tests/training/test_samplers.py', [
    ["the sampler's weights stay after the comparison", '            self._lay_in(own)', '            pass'],
  ]),
  ...breaking('gpu-worker/temper_gpu/training/scoring.py', 'gpu-worker/tests/training/test_reference.py', [
    [
      'the reference is the base model, whatever the plan names',
      'policy.without_adapter() if step.reference is None else policy.with_adapter(step.reference)',
      'policy.without_adapter()',
    ],
  ]),
  ...breaking(
    'gpu-worker/temper_gpu/training/losses/regularisers.py',
    'gpu-worker/tests/training/test_regularisers.py',
    [
      [
        'the divergence has no gradient by its ratio',
        'return ratio_N * kl_penalty',
        'return ratio_N.detach() * kl_penalty',
      ],
    ],
  ),
  ...breaking('gpu-worker/temper_gpu/training/step.py', 'gpu-worker/tests/training/test_regularisers.py', [
    ['the divergence is not weighed by a correction', 'laid.factors_N * policy_kl_penalty', 'policy_kl_penalty'],
  ]),
  ...breaking('store/records/retention/live-blobs.ts', 'test/store/records/reference.test.ts', [
    ["another run's reference is pruned", 'compared.set(sha256, `the run', 'compared.delete(`the run'],
  ]),
  ...breaking('store/records/copy/contents.ts', 'test/store/records/reference.test.ts', [
    [
      'a run is copied without its reference',
      '...blobsOfConfig(file.config)',
      '...Object.values(file.config.startAdapter ?? {})',
    ],
  ]),
  ...breaking('core/plan/window.ts', 'test/core/plan/step.test.ts', [
    ['a step does not name its sampler', 'if (staleness + behind > 0)', 'if (staleness > 0)'],
    [
      'a step samples from the newest checkpoint, whatever its plan',
      'policies: [...(position.upcoming ?? []), newest]',
      'policies: [newest, ...(position.upcoming ?? [])]',
    ],
  ]),
];
