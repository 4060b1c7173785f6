"""What a step asks of the processes that compute it together. Alone, a process computes all of it.

Every rank lays the same micro-batches, computes its share of them, and adds what the others found in the order of the
ranks: each comes to the same bits, and so does everybody who makes the step again with as many ranks.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from torch import Tensor, nn

T = TypeVar("T")


class StepCancelled(Exception):
    """The step was given up between two micro-batches: nothing was committed, and the policy's memory is dirty."""


class Ranks(Protocol):
    @property
    def count(self) -> int: ...

    def share(self, batches: Sequence[T], size: Callable[[T], int]) -> Iterable[T]:
        """This rank's part of what all of them know, in order."""
        ...

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Everybody's, by rank. Raises StepCancelled on all ranks if one of them is to give up."""
        ...

    def add(self, tensor: Tensor) -> Tensor:
        """The sum of everybody's."""
        ...

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Each has the sum of everybody's gradients then."""
        ...


class Alone:
    count = 1

    def share(self, batches: Sequence[T], size: Callable[[T], int]) -> Iterable[T]:
        return batches

    def gather(self, tensor: Tensor) -> list[Tensor]:
        return [tensor]

    def add(self, tensor: Tensor) -> Tensor:
        return tensor

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """They are the sum."""


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
