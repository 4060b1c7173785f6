"""One sequence in each row, dealt deterministically.

Shapes: B rows, T padded tokens.
"""

from collections.abc import Sequence

import torch

from temper_gpu.training.packing.micro_batch import MicroBatch, make_micro_batch
from temper_gpu.training.packing.row import Row
from temper_gpu.training.packing.segments import Segment, SegmentTree


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
