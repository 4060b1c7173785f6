"""A sequence of tokens to train on, as a packer takes it."""

from dataclasses import dataclass, field
from typing import Literal

Begin = Literal["attempt", "fork", "history"]


@dataclass
class Row:
    """`positions` of the sampled tokens in `token_ids`, ascending; the lists after it run parallel. `calls`: the
    calls that sampled them, one after the other, each with its number of tokens; may be empty. `place`: index
    of the first one among the sampled tokens of all rows."""

    token_ids: list[int]
    begins: Begin = "attempt"
    positions: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    temperatures: list[float] = field(default_factory=list)
    advantages: list[float] = field(default_factory=list)
    calls: list[tuple[int, int]] = field(default_factory=list)
    place: int = 0
