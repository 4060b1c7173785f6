"""Which tokens of a micro-batch attend to which.

A segment is a stretch of tokens in a row. A token attends to itself, to what stands before it in its segment, and to
all of the segments that its own one continues: its parent, the parent's parent, and so on. Padding belongs to none.
Shapes: B rows, T padded tokens, S segments.
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
    # The segment that this one continues, by its place in the tree's list; None: it is the beginning of a sequence.
    parent: int | None = None


@dataclass(frozen=True)
class SegmentTree:
    """A parent stands before its children, in the list as in their row."""

    segments: tuple[Segment, ...]

    @cached_property
    def is_chains(self) -> bool:
        """Each row is one sequence from its first token on: causal attention alone says the same."""
        return all(segment.parent is None and segment.start == 0 for segment in self.segments)

    def positions_BT(self, num_rows: int, width: int, device: torch.device) -> Tensor:
        """How many tokens a token attends to beside itself; of padding, 0."""
        if self.is_chains:
            # One row for all, as models make it themselves. Cosines of more numbers at once differ in their last bits.
            return torch.arange(width, device=device)[None]
        positions_BT = torch.zeros(num_rows, width, dtype=torch.long)
        ends: list[int] = []
        for row, start, length, parent in self.segments:
            first = 0 if parent is None else ends[parent]
            ends.append(first + length)
            positions_BT[row, start : start + length] = torch.arange(first, first + length)
        return positions_BT.to(device)

    def mask_B1TT(self, num_rows: int, width: int, device: torch.device, window: int | None = None) -> Tensor | None:
        """True where a token (T) attends to another (the last T); None where a model's own attention says the same.

        A layer's `window` counts the tokens of a token's own sequence, itself included; None: it sees all of them.
        """
        if self.is_chains:
            return None
        owners_BT = torch.full((num_rows, width), len(self.segments))
        sees_SS = torch.zeros(len(self.segments) + 1, len(self.segments) + 1, dtype=torch.bool)
        for index, (row, start, length, parent) in enumerate(self.segments):
            owners_BT[row, start : start + length] = index
            if parent is not None:
                sees_SS[index] = sees_SS[parent]
            sees_SS[index, index] = True
        # Padding attends to itself: a softmax over nothing is no number.
        sees_SS[-1, -1] = True
        owners_BT, sees_SS = owners_BT.to(device), sees_SS.to(device)
        mask_BTT = sees_SS[owners_BT[:, :, None], owners_BT[:, None, :]].tril()
        if window is not None:
            positions_BT = self.positions_BT(num_rows, width, device)
            mask_BTT &= positions_BT[:, :, None] - positions_BT[:, None, :] < window
        return mask_BTT[:, None]
