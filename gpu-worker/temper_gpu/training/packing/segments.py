"""Attention between the tokens of a micro-batch.

A segment is a stretch of tokens in a row. A token attends to itself, to earlier tokens of its segment, and to all of
the segments that it continues: its parent, the parent's parent, and so on. Padding belongs to none.

Shapes: B rows, T padded tokens, Q queries, K keys.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor


class Segment(NamedTuple):
    row: int
    start: int
    length: int
    # Index of the segment that this one continues; None: it begins a sequence.
    parent: int | None = None

    @property
    def stop(self) -> int:
        return self.start + self.length


@dataclass(frozen=True)
class SegmentTree:
    """Either chains, one in each row from its first token on, or trees in a single row without padding. There a segment
    is followed by all that continue it before the next one of its siblings begins, in the list as in the row."""

    segments: tuple[Segment, ...]

    @cached_property
    def is_chains(self) -> bool:
        """Whether each row is one sequence from its first token on, so that causal attention suffices."""
        return all(segment.parent is None and segment.start == 0 for segment in self.segments)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """For each segment, the end of its last continuation, or its own."""
        ends = [segment.stop for segment in self.segments]
        for index in range(len(ends) - 1, -1, -1):
            parent = self.segments[index].parent
            if parent is not None:
                ends[parent] = max(ends[parent], ends[index])
        return tuple(ends)

    @cached_property
    def children(self) -> dict[int | None, list[int]]:
        """Children by segment, in order; those of None begin sequences."""
        children: dict[int | None, list[int]] = {}
        for index, segment in enumerate(self.segments):
            children.setdefault(segment.parent, []).append(index)
        return children

    def positions_BT(self, width: int, device: torch.device) -> Tensor:
        """Number of other tokens that a token attends to."""
        if self.is_chains:
            # One row serves all, as in models themselves: cosines of larger tensors differ in their last bits.
            return torch.arange(width, device=device)[None]
        return self.depths_T.to(device)[None]

    @cached_property
    def depths_T(self) -> Tensor:
        """Number of earlier tokens in a token's sequence, for a single row."""
        depths_T = torch.empty(self.segments[-1].stop, dtype=torch.long)
        depths: list[int] = []
        for _, start, length, parent in self.segments:
            first = 0 if parent is None else depths[parent]
            depths.append(first + length)
            depths_T[start : start + length] = torch.arange(first, first + length)
        return depths_T

    @cached_property
    def ends_T(self) -> Tensor:
        lengths = torch.tensor([segment.length for segment in self.segments])
        return torch.tensor(self.ends).repeat_interleave(lengths)

    def mask_QK(self, queries_Q: Tensor, keys_K: Tensor, window: int | None = None) -> Tensor:
        """True if a tree's token attends to another, both by place: to itself, and to earlier tokens whose
        continuations include it.

        A layer's `window` counts the tokens of a token's own sequence, itself included; None: no limit.
        """
        mask_QK = keys_K <= queries_Q[:, None]
        mask_QK &= queries_Q[:, None] < self.ends_T[keys_K]
        if window is not None:
            mask_QK &= self.depths_T[queries_Q][:, None] < self.depths_T[keys_K] + window
        return mask_QK
