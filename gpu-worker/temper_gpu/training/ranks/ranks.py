"""What a step asks of the processes that compute it together. Alone, a process computes all of it.

Every rank lays the same micro-batches and computes its share of them (turns.py). What they found is added in the
order of the ranks, whoever was first: as many ranks come to the same bits again. Rank 0 makes the optimizer step, and
commits.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from torch import Tensor, nn

IsCancelled = Callable[[], bool]


def never_cancelled() -> bool:
    return False


class StepCancelled(Exception):
    """The step was given up between two micro-batches: nothing was committed, and the policy's memory is dirty."""


class RankLost(Exception):
    """A rank ended, or hangs: those who are left cannot finish the step."""


class Ranks(Protocol):
    @property
    def rank(self) -> int: ...

    @property
    def count(self) -> int: ...

    @property
    def shards(self) -> bool:
        """Whether each holds a part of the base model alone: a pass of one is a pass of all then."""
        ...

    def meet(self) -> None:
        """Returns once all ranks are here."""
        ...

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Everybody's, by rank."""
        ...

    def add(self, tensor: Tensor) -> Tensor:
        """The sum of everybody's."""
        ...

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Each has the sum of everybody's gradients then."""
        ...

    def broadcast(self, parameters: Iterable[nn.Parameter]) -> None:
        """Each has the values of rank 0 then."""
        ...

    def send(self, tensor: Tensor) -> None:
        """In main memory: each has the bits of rank 0 then."""
        ...

    def collect(self, whole: Tensor, part: Tensor) -> None:
        """Everybody's part, by rank, into the whole. On the device where parts of the base model are."""
        ...


class Alone:
    rank = 0
    count = 1
    shards = False

    def meet(self) -> None:
        """Nobody else comes."""

    def gather(self, tensor: Tensor) -> list[Tensor]:
        return [tensor]

    def add(self, tensor: Tensor) -> Tensor:
        return tensor

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """They are the sum."""

    def broadcast(self, parameters: Iterable[nn.Parameter]) -> None:
        """Nobody else has some."""

    def send(self, tensor: Tensor) -> None:
        """Nobody else wants it."""

    def collect(self, whole: Tensor, part: Tensor) -> None:
        """There is one part."""
        whole.copy_(part)


ALONE = Alone()
