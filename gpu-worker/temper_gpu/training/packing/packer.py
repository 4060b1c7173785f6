"""Rows → micro-batches.

The weight of the step's mean (1 / trained tokens) is folded into the advantages before rows are dealt, so the loss is a
plain sum over tokens: how it is cut into micro-batches, and what they share, changes rounding alone.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch

from temper_gpu.training.packing.chains import deal, lay_chains, num_padded_tokens
from temper_gpu.training.packing.micro_batch import MicroBatch
from temper_gpu.training.packing.row import Row
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
