"""Losses that weigh each sampled token by its own ratio ρ, and one that weighs a sequence's tokens by one ratio."""

import torch
from torch import Tensor, maximum, minimum, where

from temper_gpu.contract import CispoLoss, DppoLoss, GspoLoss, ImportanceSamplingLoss, PpoLoss, SapoLoss
from temper_gpu.training.losses.loss import CLIPPED_SHARE, TokenLoss, bounded_ratio
from temper_gpu.training.packing import MicroBatch

# Tolerance of a clipped ratio: sampler and trainer add in another order, which is no clipping.
ROUNDING = 1e-3
# Bound of a sequence's mean log ρ, as in verl and SkyRL.
MAX_LOG_SEQUENCE_RATIO = 10.0


def cispo(config: CispoLoss, batch: MicroBatch, logprobs_N: Tensor) -> TokenLoss:
    """−sg(clip(ρ, 1 − εl, 1 + εh)) · A · log π: every token keeps a gradient (MiniMax-M1, arXiv 2506.13585, eq. 4)."""
    ratio_N, _ = bounded_ratio(logprobs_N.detach() - batch.sampled_logprobs_N)
    clipped_ratio_N = ratio_N.clamp(1 - config.epsilon_low, 1 + config.epsilon_high)
    was_clipped_N = (clipped_ratio_N - ratio_N).abs() > ROUNDING
    return TokenLoss(-clipped_ratio_N * batch.weighted_advantages_N * logprobs_N, {CLIPPED_SHARE: was_clipped_N})


def ppo(config: PpoLoss, batch: MicroBatch, logprobs_N: Tensor) -> TokenLoss:
    """−min(ρA, clip(ρ, 1 − εl, 1 + εh) A), for A < 0 at most −cA.

    PPO: arXiv 1707.06347, eq. 7. Dual clip: arXiv 1912.09729, eq. 5.
    """
    advantages_N, dual_clip = batch.weighted_advantages_N, config.dual_clip
    ratio_N, was_bounded_N = bounded_ratio(logprobs_N - batch.sampled_logprobs_N)
    clipped_ratio_N = ratio_N.clamp(1 - config.epsilon_low, 1 + config.epsilon_high)
    unclipped_N, clipped_N = ratio_N * advantages_N, clipped_ratio_N * advantages_N
    objective_N = minimum(unclipped_N, clipped_N)
    was_clipped_N = (clipped_N < unclipped_N) & ((clipped_ratio_N - ratio_N).abs() > ROUNDING)
    if dual_clip is not None:
        floor_N = where(advantages_N < 0, dual_clip * advantages_N, objective_N)
        was_clipped_N = was_clipped_N | ((floor_N > objective_N) & (ratio_N > dual_clip + ROUNDING))
        objective_N = maximum(objective_N, floor_N)
    return TokenLoss(-objective_N, {CLIPPED_SHARE: was_clipped_N.detach() | was_bounded_N})


def importance_sampling(_config: ImportanceSamplingLoss, batch: MicroBatch, logprobs_N: Tensor) -> TokenLoss:
    """−ρA: the policy gradient under another sampler, clipped by nothing but the bound of all ratios."""
    ratio_N, was_bounded_N = bounded_ratio(logprobs_N - batch.sampled_logprobs_N)
    return TokenLoss(-ratio_N * batch.weighted_advantages_N, {CLIPPED_SHARE: was_bounded_N})


def dppo(config: DppoLoss, batch: MicroBatch, logprobs_N: Tensor) -> TokenLoss:
    """−keep · A · ρ + κ (log ρ)², keep = 0 where |π − μ| > δ and the advantage pushes further away.

    The region is the binary total variation of DPPO (arXiv 2602.04879); the quadratic term is that of prime-rl's loss,
    which adds it to every token: masked ones are pulled back.
    """
    log_ratio_N = logprobs_N - batch.sampled_logprobs_N
    shift_N = (logprobs_N.exp() - batch.sampled_logprobs_N.exp()).detach()
    was_clipped_N = (shift_N * batch.weighted_advantages_N.sign()) > config.max_shift
    kept_N = where(was_clipped_N, 0.0, batch.weighted_advantages_N)
    penalty_N = config.log_ratio_penalty * log_ratio_N.square()
    ratio_N, was_bounded_N = bounded_ratio(log_ratio_N)
    return TokenLoss(-kept_N * ratio_N, {CLIPPED_SHARE: was_clipped_N | was_bounded_N}, penalty_N)


def sapo(config: SapoLoss, batch: MicroBatch, logprobs_N: Tensor) -> TokenLoss:
    """−(4 / τ) σ(τ (ρ − 1)) · A, with a τ for A > 0 and another for A ≤ 0: the gradient is that of −ρA at ρ = 1, and
    fades smoothly away from it (Soft Adaptive Policy Optimization, arXiv 2511.20347; TRL's `loss_type="sapo"`)."""
    advantages_N = batch.weighted_advantages_N
    ratio_N, _ = bounded_ratio(logprobs_N - batch.sampled_logprobs_N)
    temperature_N = where(advantages_N > 0, config.tau_positive, config.tau_negative)
    gate_N = (temperature_N * (ratio_N - 1)).sigmoid() * 4 / temperature_N
    return TokenLoss(-gate_N * advantages_N, {})


def gspo(config: GspoLoss, batch: MicroBatch, logprobs_N: Tensor) -> TokenLoss:
    """−min(sA, clip(s, 1 − εl, 1 + εh) A) with s = exp(mean of log ρ over the sequence), as each token's own ratio.

    GSPO-token: arXiv 2507.18071, eq. 13 and 14. s has the value of GSPO's ratio (eq. 7) and the gradient of the token
    at its position, so that a token's advantage moves that token. If all tokens of a sequence have equal advantages,
    that is GSPO's gradient. Means move by thousandths: clipping is reported as it is.
    """
    with torch.no_grad():
        level_N, was_bounded_N = bounded_ratio(
            sequence_means(logprobs_N - batch.sampled_logprobs_N, batch), MAX_LOG_SEQUENCE_RATIO
        )
    ratio_N = level_N * (logprobs_N - logprobs_N.detach()).exp()
    clipped_ratio_N = ratio_N.clamp(1 - config.epsilon_low, 1 + config.epsilon_high)
    unclipped_N, clipped_N = ratio_N * batch.weighted_advantages_N, clipped_ratio_N * batch.weighted_advantages_N
    return TokenLoss(
        -minimum(unclipped_N, clipped_N), {CLIPPED_SHARE: (clipped_N < unclipped_N).detach() | was_bounded_N}
    )


def sequence_means(values_N: Tensor, batch: MicroBatch) -> Tensor:
    """For each token, the mean over its sequence's sampled tokens."""
    sums_S = values_N.new_zeros(batch.num_sequences).index_add(0, batch.sequences_N, values_N)
    sizes_S = values_N.new_zeros(batch.num_sequences).index_add(0, batch.sequences_N, torch.ones_like(values_N))
    return (sums_S / sizes_S.clamp(min=1))[batch.sequences_N]
