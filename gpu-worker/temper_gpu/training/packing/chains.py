"""One sequence in each row: deterministic, and without a say in the result.

The weight of the step's mean (1 / trained tokens) is folded into the advantages before rows are dealt, so the loss is a
plain sum over tokens: how it is cut into micro-batches changes rounding alone.
Shapes: B rows, T padded tokens, N sampled tokens of the micro-batch.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from temper_gpu.training.packing.micro_batch import MicroBatch
from temper_gpu.training.packing.row import Row
from temper_gpu.training.packing.segments import Segment, SegmentTree


def pack(rows: Sequence[Row], num_trained_tokens: int, max_tokens: int, device: torch.device) -> list[MicroBatch]:
    return [_micro_batch(part, 1 / num_trained_tokens, device) for part in deal(rows, max_tokens)]


def deal(rows: Sequence[Row], max_tokens: int) -> list[list[Row]]:
    """Longest first (memory runs out at once or never), plan order among equals; a row over the bound goes alone."""
    parts: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: -len(row.token_ids)):
        if not parts or (len(parts[-1]) + 1) * len(parts[-1][0].token_ids) > max_tokens:
            parts.append([])
        parts[-1].append(row)
    return parts


def _micro_batch(rows: list[Row], weight: float, device: torch.device) -> MicroBatch:
    """Padding stands on the right, where causal attention never looks: no mask is needed, and any id will do."""
    width = len(rows[0].token_ids)
    chains = SegmentTree(tuple(Segment(b, 0, len(row.token_ids)) for b, row in enumerate(rows)))
    return MicroBatch(
        token_ids_BT=torch.tensor([row.token_ids + [0] * (width - len(row.token_ids)) for row in rows], device=device),
        positions_BT=chains.positions_BT(len(rows), width, device),
        attention=chains,
        sources_N=torch.tensor([b * width + t - 1 for b, row in enumerate(rows) for t in row.positions], device=device),
        targets_N=torch.tensor([row.token_ids[t] for row in rows for t in row.positions], device=device),
        sequences_N=torch.tensor([b for b, row in enumerate(rows) for _ in row.positions], device=device),
        num_sequences=len(rows),
        sampled_logprobs_N=_floats((value for row in rows for value in row.logprobs), device),
        temperatures_N=_floats((value for row in rows for value in row.temperatures), device),
        weighted_advantages_N=_floats((advantage * weight for row in rows for advantage in row.advantages), device),
    )


def _floats(values: Iterable[float], device: torch.device) -> Tensor:
    return torch.tensor(list(values), dtype=torch.float32, device=device)
