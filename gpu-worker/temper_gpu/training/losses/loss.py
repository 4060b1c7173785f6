"""What a loss is to a step."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from torch import Tensor

from temper_gpu.training.packing import MicroBatch

CLIPPED_SHARE = "clippedShare"


# Of log ρ, beyond which a ratio says nothing but that sampler and policy are strangers; as verl and SkyRL bound it.
MAX_LOG_RATIO = 20.0


def bounded_ratio(log_ratio_N: Tensor, most: float = MAX_LOG_RATIO) -> tuple[Tensor, Tensor]:
    """exp(log ρ) with log ρ held to ± `most`, where it has no gradient; and which tokens' was held."""
    return log_ratio_N.clamp(-most, most).exp(), log_ratio_N.detach().abs() > most


class TokenLoss(NamedTuple):
    """Of each sampled token: its share of the loss, and numbers whose mean over the step is a metric of that name.

    `penalty_N` does not hang on the advantage, which holds a token's weight: it has yet to be weighed.
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
