"""The optimizer updates of a step, in order, and the rows that each of them trains.

A pass covers all groups once; a mini-batch is an update on some of them. Groups stay whole: their advantages belong
together, and they share prompts. Each pass orders the groups by a hash of seed, pass and group, so the same step always
has the same updates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, chain, pairwise

from temper_gpu.contract import TrainConfig
from temper_gpu.training.groups import Group
from temper_gpu.training.rows import Rows


@dataclass(frozen=True)
class Update:
    """`pass_number` counts from 1."""

    pass_number: int
    rows: Rows


def plan_updates(groups: Sequence[Group], rows: Rows, config: TrainConfig, seed: str) -> list[Update]:
    """Plans one update on all rows, or passes and mini-batches. Rows without a signal are left out: AdamW's momentum
    must not move the policy alone."""
    ends = list(accumulate((len(group.attempts) for group in groups), initial=0))
    members = [set(range(start, end)).intersection(rows.attempts) for start, end in pairwise(ends)]
    trained = [place for place, attempts in enumerate(members) if attempts]
    updates = [
        Update(number, rows.of_attempts(set(chain.from_iterable(members[place] for place in part))))
        for number in range(1, config.passes + 1)
        for part in _split(_shuffled(trained, f"{seed}/{number}"), config.mini_batches)
    ]
    return [update for update in updates if update.rows.have_signal]


def _shuffled(places: Sequence[int], seed: str) -> list[int]:
    return sorted(places, key=lambda place: sha256(f"{seed}/{place}".encode()).digest())


def _split(places: Sequence[int], num_parts: int) -> list[Sequence[int]]:
    """Splits as evenly as possible, without empty parts."""
    num_parts = max(1, min(num_parts, len(places)))
    bounds = [part * len(places) // num_parts for part in range(num_parts + 1)]
    return [places[start:end] for start, end in pairwise(bounds)]
