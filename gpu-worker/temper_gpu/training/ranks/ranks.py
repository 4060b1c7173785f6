"""What a step asks of the processes that compute it together. Alone, a process computes all of it.

Every rank lays the same micro-batches and computes its share of them. What they found is added in the order of the
ranks, whoever was first: as many ranks come to the same bits again. Rank 0 makes the optimizer step, and commits.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from torch import Tensor, nn

T = TypeVar("T")


class StepCancelled(Exception):
    """The step was given up between two micro-batches: nothing was committed, and the policy's memory is dirty."""


class RankLost(Exception):
    """A rank ended, or hangs: those who are left cannot finish the step."""


class Ranks(Protocol):
    @property
    def rank(self) -> int: ...

    @property
    def count(self) -> int: ...

    def meet(self) -> None:
        """Returns once all ranks are here."""
        ...

    def share(self, batches: Sequence[T], size: Callable[[T], int]) -> Sequence[T]:
        """This rank's part of what all of them know, in order."""
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

    def spread(self, parameters: Iterable[nn.Parameter]) -> None:
        """Each has the values of rank 0 then."""
        ...


class Alone:
    rank = 0
    count = 1

    def meet(self) -> None:
        """Nobody else comes."""

    def share(self, batches: Sequence[T], size: Callable[[T], int]) -> Sequence[T]:
        return batches

    def gather(self, tensor: Tensor) -> list[Tensor]:
        return [tensor]

    def add(self, tensor: Tensor) -> Tensor:
        return tensor

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """They are the sum."""

    def spread(self, parameters: Iterable[nn.Parameter]) -> None:
        """Nobody else has some."""


ALONE = Alone()


def deal_shares(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Places by rank: the largest first, each to the rank that has the least so far. In order within a share."""
    loads = [0] * count
    shares: list[list[int]] = [[] for _ in range(count)]
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        rank = loads.index(min(loads))
        loads[rank] += sizes[place]
        shares[rank].append(place)
    return [sorted(share) for share in shares]
