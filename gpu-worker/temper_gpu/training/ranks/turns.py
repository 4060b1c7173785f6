"""The schedule of micro-batches on each rank.

Ranks of a sharded base model gather a layer's weights together, so all of them make the same number of passes. A rank
without a micro-batch, or without a gradient, makes a dummy pass whose result is dropped.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Generic, TypeVar

from temper_gpu.training.ranks.ranks import IsCancelled, Ranks, StepCancelled

T = TypeVar("T")


@dataclass(frozen=True)
class Turn(Generic[T]):
    """`counts`: the micro-batch is this rank's own. `trains`: its gradient counts, too. `goes_back`: it has a backward
    pass."""

    batch: T
    counts: bool
    trains: bool
    goes_back: bool


def plan_turns(
    ranks: Ranks, batches: Sequence[T], size: Callable[[T], int], trains: Callable[[T], bool] = lambda batch: False
) -> list[Turn[T]]:
    """This rank's turns in order, planned from the micro-batches of all ranks."""
    sizes = [size(batch) for batch in batches]
    shares = deal_shares(sizes, ranks.count)
    if not ranks.shards:
        own = [(batches[place], trains(batches[place])) for place in shares[ranks.rank]]
        return [Turn(batch, True, is_trained, is_trained) for batch, is_trained in own]
    trained = [trains(batch) for batch in batches]
    # Dummy passes compute the smallest micro-batch.
    least = min(range(len(sizes)), key=lambda place: sizes[place], default=0)
    turns: list[Turn[T]] = []
    for places in zip_longest(*shares):
        own = places[ranks.rank]
        place = least if own is None else own
        goes_back = any(trained[each] for each in places if each is not None)
        turns.append(Turn(batches[place], own is not None, own is not None and trained[own], goes_back))
    return turns


def until_cancelled(turns: Iterable[T], is_cancelled: IsCancelled) -> Iterator[T]:
    for turn in turns:
        if is_cancelled():
            raise StepCancelled
        yield turn
    if is_cancelled():
        raise StepCancelled


def deal_shares(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Places by rank: the largest first, each to the least loaded rank. Shares are in order."""
    loads = [0] * count
    shares: list[list[int]] = [[] for _ in range(count)]
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        rank = loads.index(min(loads))
        loads[rank] += sizes[place]
        shares[rank].append(place)
    return [sorted(share) for share in shares]
