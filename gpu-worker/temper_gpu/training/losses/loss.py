"""The interface of a loss."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from torch import Tensor

from temper_gpu.training.packing import MicroBatch

CLIPPED_SHARE = "clippedShare"


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
