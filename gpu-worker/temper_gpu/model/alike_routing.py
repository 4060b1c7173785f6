"""Mixtures of experts on tensors without numbers: which experts a token takes, where nothing can say it.

All tokens take the same experts. That is the most that an expert ever computes at once. How many rows all experts
compute together, tokens times experts of a token, is the same however tokens are routed.

Shapes: T tokens, K experts of a token, E experts.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.configuration_utils import PreTrainedConfig

from temper_gpu.model.layers import experts_per_token

aten = torch.ops.aten


class AlikeRouting(TorchDispatchMode):
    """Answers what depends on numbers as routing all tokens alike would: the first K experts are taken, by each token.
    Tensors with numbers are left alone."""

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__()
        self._num_taken = experts_per_token(config)
        self._answers: dict[Any, Callable[..., Any]] = {
            aten.bincount.default: self._count_tokens,
            aten.nonzero.default: self._find,
            aten._local_scalar_dense.default: lambda index: 0,
        }

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = self._answers.get(func)
        if answer is None or not args[0].is_meta:
            return func(*args, **(kwargs or {}))
        return answer(*args, **(kwargs or {}))

    def _count_tokens(self, chosen_N: Tensor, weights: None = None, minlength: int = 0) -> Tensor:
        """Tokens of each expert, in order. They need numbers, because a list is made of them."""
        counts_E = torch.zeros(minlength, dtype=torch.long)
        counts_E[: self._num_taken] = len(chosen_N) // self._num_taken
        return counts_E

    def _find(self, mask: Tensor) -> Tensor:
        """Taken experts for [E]; for [K, T], the tokens of each."""
        num_found = self._num_taken if mask.dim() == 1 else mask.shape[-1]
        return torch.empty(num_found, mask.dim(), dtype=torch.long, device=mask.device)
