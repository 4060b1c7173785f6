"""The interface of a loss, and the weights of tokens in an update's loss.

Shapes: N sampled tokens of a micro-batch, F those of the update, K its attempts.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, assert_never

import torch
from torch import Tensor

from temper_gpu.training.packing import MicroBatch

CLIPPED_SHARE = "clippedShare"
Reduction = Literal["token", "attempt", "constant"]


# Bound of log ρ, beyond which sampler and policy have nothing in common; as in verl and SkyRL.
MAX_LOG_RATIO = 20.0


def bounded_ratio(log_ratio_N: Tensor, most: float = MAX_LOG_RATIO) -> tuple[Tensor, Tensor]:
    """exp(log ρ) with log ρ clamped to ± `most`, without a gradient there; and which tokens were clamped."""
    return log_ratio_N.clamp(-most, most).exp(), log_ratio_N.detach().abs() > most


class TokenLoss(NamedTuple):
    """Each sampled token's share of the loss, and numbers whose mean over the step is the metric of that name.

    `penalty_N` is independent of the advantage, which includes the token's weight, so it is weighed later.
    """

    loss_N: Tensor
    metrics: Mapping[str, Tensor]
    penalty_N: Tensor | None = None

    def penalised(self, penalty_N: Tensor) -> "TokenLoss":
        return self._replace(penalty_N=penalty_N if self.penalty_N is None else self.penalty_N + penalty_N)

    def total(self, weights_N: Tensor) -> Tensor:
        return self.loss_N if self.penalty_N is None else self.loss_N + weights_N * self.penalty_N


class Loss(NamedTuple):
    """`function(batch, log π)`, and the names of the metrics that it gives beside the loss."""

    function: Callable[[MicroBatch, Tensor], TokenLoss]
    metrics: tuple[str, ...]


def token_weights(
    reduction: Reduction, attempts_F: Tensor, kept_F: Tensor, tokens_per_attempt: int | None = None
) -> Tensor:
    """Exact zeros for tokens that are not kept; counts are those of the kept ones. Fixed before tokens are dealt to
    micro-batches.

    `token`: the mean over tokens (DAPO, arXiv 2503.14476, eq. 8). `attempt`: the mean over attempts of the mean over an
    attempt's tokens (GRPO, arXiv 2402.03300, eq. 3). `constant`: the sum over tokens, divided by attempts times a given
    number of tokens, so that no length matters (Dr. GRPO, arXiv 2503.20783).
    """
    kept_F = kept_F.double()
    _, places_F = attempts_F.unique(return_inverse=True)
    sizes_K = torch.zeros(int(places_F.max()) + 1, dtype=torch.float64).index_add(0, places_F, kept_F)
    num_attempts = (sizes_K > 0).sum()
    match reduction:
        case "token":
            return kept_F / sizes_K.sum().clamp(min=1)
        case "attempt":
            return kept_F / (num_attempts.clamp(min=1) * sizes_K.clamp(min=1)[places_F])
        case "constant":
            return kept_F / (num_attempts.clamp(min=1) * (tokens_per_attempt or 1))
        case _:
            assert_never(reduction)
