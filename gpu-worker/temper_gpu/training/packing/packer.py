"""Rows → micro-batches.

The weight of the step's mean (1 / trained tokens) is folded into the advantages before rows are dealt, so the loss is a
plain sum over tokens: how it is cut into micro-batches, and what they share, changes rounding alone.

Shapes: B rows of one sequence each, T padded tokens.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch

from temper_gpu.training.packing.micro_batch import MicroBatch, make_micro_batch
from temper_gpu.training.packing.row import Row
from temper_gpu.training.packing.segments import Segment, SegmentTree
from temper_gpu.training.packing.trees import deal_trees, lay_trees, num_unique_tokens

Packing = Literal["rows", "tree"]
# Largest share of unique tokens: with more, a tree is not worth its attention in blocks.
MOST_UNIQUE = 0.8
# Size of a tree's micro-batch relative to the largest one of separate rows: blocks of attention copy keys.
SHARE_OF_ROWS = 7 / 8
# Fewest sampled tokens whose logits are made at once.
LEAST_AT_ONCE = 64


def pack(
    rows: Sequence[Row], num_trained_tokens: int, max_tokens: int, device: torch.device, packing: Packing = "rows"
) -> list[MicroBatch]:
    """Packs deterministically. Trees are used if rows share enough. They compute fewer tokens than the largest
    micro-batch of separate rows, and no more logits at once, so they need no more memory."""
    weight = 1 / num_trained_tokens
    chains = deal(rows, max_tokens)
    if packing == "tree":
        largest = max(map(num_padded_tokens, chains))
        trees = deal_trees(rows, int(SHARE_OF_ROWS * largest))
        if sum(map(num_unique_tokens, trees)) <= MOST_UNIQUE * sum(row.length for part in trees for row in part):
            at_once = max(LEAST_AT_ONCE, *(sum(len(row.positions) for row in part) for part in chains))
            return [replace(lay_trees(rows, part, weight, device), scored_at_once=at_once) for part in trees]
    return [lay_chains(part, weight, device) for part in chains]


def deal(rows: Sequence[Row], max_tokens: int) -> list[list[Row]]:
    """Deals the longest first, so that a lack of memory shows at once; equals keep plan order. A row over the bound
    goes alone."""
    parts: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: -len(row.token_ids)):
        if not parts or (len(parts[-1]) + 1) * len(parts[-1][0].token_ids) > max_tokens:
            parts.append([])
        parts[-1].append(row)
    return parts


def num_padded_tokens(part: Sequence[Row]) -> int:
    return len(part) * len(part[0].token_ids)


def lay_chains(rows: Sequence[Row], weight: float, device: torch.device) -> MicroBatch:
    """Pads on the right, where causal attention never looks: no mask is needed, and any id will do."""
    width = len(rows[0].token_ids)
    token_ids = [row.token_ids + [0] * (width - len(row.token_ids)) for row in rows]
    chains = SegmentTree(tuple(Segment(b, 0, len(row.token_ids)) for b, row in enumerate(rows)))
    sources = [b * width + t - 1 for b, row in enumerate(rows) for t in row.positions]
    return make_micro_batch(rows, torch.tensor(token_ids, device=device), chains, sources, weight)
