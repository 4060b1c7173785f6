"""The loss of supervised steps. Shapes: N trained tokens of a micro-batch."""

from torch import Tensor


def cross_entropy(logprobs_N: Tensor, weights_N: Tensor) -> Tensor:
    """−w log π for each token, with weights that sum to 1 over the step: nats per token, for any micro-batches."""
    return -weights_N * logprobs_N
