"""Weights of tokens in an update's loss, fixed before tokens are dealt to micro-batches.

Shapes: F sampled tokens of the update, K attempts.
"""

from typing import Literal, assert_never

import torch
from torch import Tensor

Reduction = Literal["token", "attempt", "constant"]


def token_weights(
    reduction: Reduction, attempts_F: Tensor, kept_F: Tensor, tokens_per_attempt: int | None = None
) -> Tensor:
    """Exact zeros for tokens that are not kept; counts are those of the kept ones.

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
