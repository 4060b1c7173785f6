"""Losses per sampled token: pure functions of log π, log μ and the advantage.

Notation (N sampled tokens): π the policy that is trained, μ the one that sampled, ρ = exp(log π − log μ), A the
advantage, sg stops the gradient. Every ε is a distance from 1. A positive weight folded into A scales a loss by that
weight, so the step's mean is a plain sum. Each returns the loss and which tokens were clipped.

A step makes one pass over what its own policy has just sampled, so ρ is 1 but for rounding: no range clips anything and
all three have the same gradient. `core/loss-options.ts` refuses their options until a step makes several passes.
"""

from typing import NamedTuple

import torch
from torch import Tensor, maximum, minimum, where

from temper_gpu.contract import LossConfig

# A ratio this far beyond its range got there because sampler and trainer add in another order: that is no clipping.
ROUNDING = 1e-3


class TokenLoss(NamedTuple):
    loss_N: Tensor
    clipped_N: Tensor


def token_loss(config: LossConfig, logprobs_N: Tensor, sampled_logprobs_N: Tensor, advantages_N: Tensor) -> TokenLoss:
    low, high = config.epsilon_low, config.epsilon_high
    if config.name == "cispo":
        return cispo(logprobs_N, sampled_logprobs_N, advantages_N, low, high)
    if config.name == "ppo":
        return ppo(logprobs_N, sampled_logprobs_N, advantages_N, low, high, config.dual_clip)
    return importance_sampling(logprobs_N, sampled_logprobs_N, advantages_N)


def cispo(logprobs_N: Tensor, sampled_logprobs_N: Tensor, advantages_N: Tensor, low: float, high: float) -> TokenLoss:
    """−sg(clip(ρ, 1 − εl, 1 + εh)) · A · log π: every token keeps a gradient (MiniMax-M1, arXiv 2506.13585, eq. 4)."""
    ratio_N = (logprobs_N.detach() - sampled_logprobs_N).exp()
    clipped_ratio_N = ratio_N.clamp(1 - low, 1 + high)
    return TokenLoss(-clipped_ratio_N * advantages_N * logprobs_N, (clipped_ratio_N - ratio_N).abs() > ROUNDING)


def ppo(
    logprobs_N: Tensor,
    sampled_logprobs_N: Tensor,
    advantages_N: Tensor,
    low: float,
    high: float,
    dual_clip: float | None,
) -> TokenLoss:
    """−min(ρA, clip(ρ, 1 − εl, 1 + εh) A), for A < 0 at most −cA.

    PPO: arXiv 1707.06347, eq. 7. Dual clip: arXiv 1912.09729, eq. 5.
    """
    ratio_N = (logprobs_N - sampled_logprobs_N).exp()
    clipped_ratio_N = ratio_N.clamp(1 - low, 1 + high)
    unclipped_N, clipped_N = ratio_N * advantages_N, clipped_ratio_N * advantages_N
    objective_N = minimum(unclipped_N, clipped_N)
    was_clipped_N = (clipped_N < unclipped_N) & ((clipped_ratio_N - ratio_N).abs() > ROUNDING)
    if dual_clip is not None:
        floor_N = where(advantages_N < 0, dual_clip * advantages_N, objective_N)
        was_clipped_N = was_clipped_N | ((floor_N > objective_N) & (ratio_N > dual_clip + ROUNDING))
        objective_N = maximum(objective_N, floor_N)
    return TokenLoss(-objective_N, was_clipped_N.detach())


def importance_sampling(logprobs_N: Tensor, sampled_logprobs_N: Tensor, advantages_N: Tensor) -> TokenLoss:
    """−ρA: the unclipped policy gradient under a sampler of its own."""
    ratio_N = (logprobs_N - sampled_logprobs_N).exp()
    return TokenLoss(-ratio_N * advantages_N, ratio_N.new_zeros(ratio_N.shape, dtype=torch.bool))
