"""Losses that weigh all tokens of a sequence by one ratio."""

import torch
from torch import Tensor, minimum

from temper_gpu.contract import GspoLoss
from temper_gpu.training.losses.loss import CLIPPED_SHARE, TokenLoss, bounded_ratio
from temper_gpu.training.packing import MicroBatch

# Bound of a sequence's mean log ρ, as in verl and SkyRL.
MAX_LOG_SEQUENCE_RATIO = 10.0


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
