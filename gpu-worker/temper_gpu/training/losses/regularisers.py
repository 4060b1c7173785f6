"""Terms that no advantage changes: the loss of supervised steps, and penalties, which the update's reduction weighs.

Shapes: N sampled tokens of a micro-batch, or the trained ones of a supervised step; F those of the step.
"""

from torch import Tensor

from temper_gpu.training.losses.loss import bounded_ratio


def cross_entropy(logprobs_N: Tensor, weights_N: Tensor) -> Tensor:
    """−w log π for each token, with weights that sum to 1 over the step: nats per token, for any micro-batches."""
    return -weights_N * logprobs_N


def kl_penalty(logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor:
    """k3 = π_ref / π − log(π_ref / π) − 1: never negative, and in the mean over what π samples its divergence from the
    reference (Schulman, "Approximating KL divergence"; GRPO, arXiv 2402.03300, eq. 4). Its gradient is that of
    KL(π_ref ‖ π), because what π samples is a constant to it."""
    log_ratio_N = reference_logprobs_N - logprobs_N
    return log_ratio_N.expm1() - log_ratio_N


def policy_kl_penalty(logprobs_N: Tensor, reference_logprobs_N: Tensor, sampled_logprobs_N: Tensor) -> Tensor:
    """ρ · k3, whose mean over what μ samples is KL(π ‖ π_ref), and so is its gradient: ρ has one, even where it is 1
    (DeepSeek-V3.2, arXiv 2512.02556; TRL's `use_bias_correction_kl`)."""
    ratio_N, _ = bounded_ratio(logprobs_N - sampled_logprobs_N)
    return ratio_N * kl_penalty(logprobs_N, reference_logprobs_N)


def kl_reward(logprobs_F: Tensor, reference_logprobs_F: Tensor) -> Tensor:
    """mean(log π / π_ref) − log π / π_ref, to be added to advantages: tokens that became likelier than most lose.

    Its mean is 0, so that it moves no advantage as a whole (tinker-cookbook, `incorporate_kl_penalty`).
    """
    log_ratio_F = logprobs_F - reference_logprobs_F
    return log_ratio_F.mean() - log_ratio_F
