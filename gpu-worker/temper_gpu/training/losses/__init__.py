"""Losses: pure functions of log π and of the micro-batch with sampled tokens and advantages.

Notation (N sampled tokens): π the trained policy, μ the sampler, ρ = exp(log π − log μ), A the advantage, sg stops the
gradient. Every ε is a distance from 1. A positive weight folded into A scales a loss by that weight, so the update's
mean is a plain sum. Penalties independent of A are weighed separately.

In a step's first update ρ is 1 up to rounding: no range clips anything, and all losses have the same gradient.
`core/rules/loss-options.ts` refuses their options in steps of a single update.
"""

from temper_gpu.training.losses.loss import CLIPPED_SHARE, Loss, TokenLoss, token_weights
from temper_gpu.training.losses.regularisers import cross_entropy, kl_penalty, kl_reward, policy_kl_penalty
from temper_gpu.training.losses.table import find_loss

__all__ = [
    "CLIPPED_SHARE",
    "Loss",
    "TokenLoss",
    "cross_entropy",
    "find_loss",
    "kl_penalty",
    "kl_reward",
    "policy_kl_penalty",
    "token_weights",
]
