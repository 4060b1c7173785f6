"""What of a model trains: an adapter beside its frozen weights, or all of its weights."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from torch import Tensor, nn

from temper_gpu.training.last_layer import LastLayer
from temper_gpu.training.sharding import ShardedBase, WholeBase


class Trained(Protocol):
    """`TrainablePolicy` computes with `model` and updates `parameters`, whatever they are."""

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        """In float32, under their names in a checkpoint's file, sorted."""
        ...

    @property
    def embeddings(self) -> frozenset[str]:
        """Which of them are vectors of the vocabulary's tokens."""
        ...

    @property
    def model(self) -> Any:
        """A causal model of transformers that computes with them, or with what `as_base` and `as_checkpoint` say."""
        ...

    @property
    def last_layer(self) -> LastLayer | None:
        """Of that model."""
        ...

    @property
    def weights(self) -> ShardedBase | WholeBase:
        """What each pass has to ask for the frozen ones."""
        ...

    @property
    def saved_bytes_per_token(self) -> int: ...

    def require_same(self, what: str, tensors: Mapping[str, Tensor]) -> None:
        """Raises BadConfig for tensors that are none of the same names and shapes."""
        ...

    def updated(self) -> None:
        """The parameters have other values now."""
        ...

    def as_base(self) -> AbstractContextManager[None]:
        """The base model, to be asked within."""
        ...

    def as_checkpoint(self, tensors: Mapping[str, Tensor]) -> AbstractContextManager[None]:
        """Another checkpoint of the same kind, to be asked within."""
        ...
