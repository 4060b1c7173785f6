"""The trained part of a model: an adapter beside its frozen weights, or all of its weights."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from torch import Tensor, nn

from temper_gpu.training.sharding import ShardedBase, WholeBase


class Trained(Protocol):
    """`TrainablePolicy` computes with `model` and updates `parameters` in both cases."""

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        """Parameters in float32, sorted by their names in a checkpoint's file."""
        ...

    @property
    def embeddings(self) -> frozenset[str]:
        """Names of the parameters that are embeddings of the vocabulary."""
        ...

    @property
    def model(self) -> Any:
        """A causal model of transformers with these parameters, or with those that `as_base` and `as_checkpoint`
        select."""
        ...

    @property
    def weights(self) -> ShardedBase | WholeBase:
        """The frozen weights, which are notified of each pass."""
        ...

    @property
    def saved_bytes_per_token(self) -> int: ...

    def require_same(self, what: str, tensors: Mapping[str, Tensor]) -> None:
        """Raises BadConfig if names or shapes differ."""
        ...

    def updated(self) -> None:
        """Takes over new values of the parameters."""
        ...

    def as_base(self) -> AbstractContextManager[None]:
        """Computes with the base model."""
        ...

    def dropping(self) -> AbstractContextManager[None]:
        """Turns the adapter's dropout on."""
        ...

    def as_checkpoint(self, tensors: Mapping[str, Tensor]) -> AbstractContextManager[None]:
        """Computes with another checkpoint of the same kind."""
        ...
