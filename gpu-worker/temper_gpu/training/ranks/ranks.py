"""The communication of a step between the processes that compute it. A single process uses `Alone`.

Every rank plans the same micro-batches and computes its share of them (turns.py). Results are added in the order of the
ranks, so as many ranks give the same bits again. Rank 0 makes the optimizer step and commits.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from torch import Tensor, nn

IsCancelled = Callable[[], bool]


def never_cancelled() -> bool:
    return False


class StepCancelled(Exception):
    """The step was cancelled between two micro-batches: nothing was committed, and the policy's memory is dirty."""


class RankLost(Exception):
    """A rank ended or hangs, so the others cannot finish the step."""


class Ranks(Protocol):
    @property
    def rank(self) -> int: ...

    @property
    def count(self) -> int: ...

    @property
    def shards(self) -> bool:
        """Whether each rank holds only a part of the base model, so that all ranks make each pass together."""
        ...

    def meet(self) -> None: ...

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Tensors of all ranks, in order."""
        ...

    def add(self, tensor: Tensor) -> Tensor: ...

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None: ...

    def broadcast(self, parameters: Iterable[nn.Parameter]) -> None: ...

    def send(self, tensor: Tensor) -> None:
        """Copies the bits of rank 0 to all, in main memory."""
        ...

    def collect(self, whole: Tensor, part: Tensor) -> None:
        """Gathers the parts of all ranks into the whole, on the device of the base model's parts."""
        ...


class Alone:
    rank = 0
    count = 1
    shards = False

    def meet(self) -> None: ...

    def gather(self, tensor: Tensor) -> list[Tensor]:
        return [tensor]

    def add(self, tensor: Tensor) -> Tensor:
        return tensor

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None: ...

    def broadcast(self, parameters: Iterable[nn.Parameter]) -> None: ...

    def send(self, tensor: Tensor) -> None: ...

    def collect(self, whole: Tensor, part: Tensor) -> None:
        whole.copy_(part)


ALONE = Alone()
