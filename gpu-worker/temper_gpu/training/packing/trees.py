"""Trees of rows with common prefixes, in one row: shared tokens occur once."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from temper_gpu.training.packing.micro_batch import MicroBatch, make_micro_batch
from temper_gpu.training.packing.prefix_order import Placed, deal_by_prefix, order_by_prefix
from temper_gpu.training.packing.row import Row
from temper_gpu.training.packing.segments import Segment, SegmentTree


def deal_trees(rows: Sequence[Row], max_tokens: int) -> list[list[Placed]]:
    """Deals rows without their last token, which predicts nothing."""
    return deal_by_prefix(order_by_prefix([row.token_ids[: row.positions[-1]] for row in rows]), max_tokens)


def num_unique_tokens(part: Sequence[Placed]) -> int:
    return sum(row.length - row.num_shared for row in part)


def lay_trees(rows: Sequence[Row], part: Sequence[Placed], weight: float, device: torch.device) -> MicroBatch:
    """`rows`: those of the whole plan."""
    chosen = [rows[placed.index] for placed in part]
    laid = lay_branches(part)
    own = zip(chosen, part, strict=True)
    token_ids = [token for row, placed in own for token in row.token_ids[placed.num_shared : placed.length]]
    sources = [laid.place(b, t - 1) for b, row in enumerate(chosen) for t in row.positions]
    shared = sum(placed.num_shared for placed in part)
    return make_micro_batch(chosen, torch.tensor([token_ids], device=device), laid.tree, sources, weight, shared)


class Branch(NamedTuple):
    """A row's own tokens, which no earlier row has."""

    start: int
    # Number of tokens before them, and the row that has these; None: no tokens.
    depth: int
    parent: int | None


class Laid(NamedTuple):
    tree: SegmentTree
    branches: list[Branch]

    def place(self, row: int, depth: int) -> int:
        """The place of the token with `depth` earlier tokens in the row."""
        branch = self.branches[row]
        while depth < branch.depth and branch.parent is not None:
            branch = self.branches[branch.parent]
        return branch.start + depth - branch.depth


def lay_branches(part: Sequence[Placed]) -> Laid:
    branches: list[Branch] = []
    # For each row, the depths at which its own tokens end or other rows branch off.
    cuts: list[set[int]] = []
    # Rows that the current one may continue, the nearest on top.
    path: list[int] = []
    start = 0
    for at, (_, length, shared) in enumerate(part):
        while path and branches[path[-1]].depth >= shared:
            path.pop()
        parent = path[-1] if path else None
        if parent is not None:
            cuts[parent].add(shared)
        branches.append(Branch(start, shared, parent))
        cuts.append({length})
        path.append(at)
        start += length - shared
    return Laid(SegmentTree(tuple(_segments(branches, cuts))), branches)


def _segments(branches: Sequence[Branch], cuts: Sequence[set[int]]) -> list[Segment]:
    segments: list[Segment] = []
    # Segments by row and end depth.
    found: dict[tuple[int, int], int] = {}
    for row, (start, depth, parent) in enumerate(branches):
        before = None if parent is None else found[parent, depth]
        first = depth
        for stop in sorted(cut for cut in cuts[row] if cut > depth):
            segments.append(Segment(0, start + first - depth, stop - first, before))
            before = found[row, stop] = len(segments) - 1
            first = stop
    return segments
