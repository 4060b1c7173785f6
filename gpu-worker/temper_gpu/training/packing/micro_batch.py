"""The input of one forward and backward pass.

Shapes: B rows, T padded tokens, N sampled tokens of the micro-batch, S tokens that predict them: at least one each.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from temper_gpu.training.packing.row import Row
from temper_gpu.training.packing.segments import SegmentTree


@dataclass(frozen=True)
class MicroBatch:
    """A sequence is a training row as it was sampled: a chain of tokens from the first to the last.

    Chains have one sequence in each row, with padding. Trees have several in one row, which share their common
    prefixes. Losses are defined on sequences, so they do not depend on the layout.
    """

    token_ids_BT: Tensor
    # Positions along a token's own sequence; a single row if all rows have the same.
    positions_BT: Tensor
    attention: SegmentTree
    # Places in the flattened B · T, in order.
    predicting_S: Tensor
    # Index into `predicting_S` of the token that predicts each sampled one.
    sources_N: Tensor
    targets_N: Tensor
    # Each sampled token's sequence, of `num_sequences`; those of one sequence are adjacent, in order.
    sequences_N: Tensor
    num_sequences: int
    # Places among the sampled tokens of all rows.
    places_N: Tensor
    sampled_logprobs_N: Tensor
    temperatures_N: Tensor
    weighted_advantages_N: Tensor
    # Tokens that are not computed again, because several sequences share them.
    num_shared_tokens: int = 0
    # Most sampled tokens whose logits exist at a time; None: the policy's limit.
    scored_at_once: int | None = None


def num_computed_tokens(batch: MicroBatch) -> int:
    """Padding included."""
    return batch.token_ids_BT.numel()


def make_micro_batch(
    rows: Sequence[Row],
    token_ids_BT: Tensor,
    attention: SegmentTree,
    sources: list[int],
    weight: float,
    num_shared_tokens: int = 0,
) -> MicroBatch:
    """`sources`: places of the tokens that predict the rows' sampled ones, row by row."""
    device = token_ids_BT.device
    predicting = sorted(set(sources))
    numbers = {place: number for number, place in enumerate(predicting)}
    return MicroBatch(
        token_ids_BT=token_ids_BT,
        positions_BT=attention.positions_BT(token_ids_BT.shape[1], device),
        attention=attention,
        predicting_S=torch.tensor(predicting, device=device),
        sources_N=torch.tensor([numbers[place] for place in sources], device=device),
        targets_N=torch.tensor([row.token_ids[t] for row in rows for t in row.positions], device=device),
        sequences_N=torch.tensor([b for b, row in enumerate(rows) for _ in row.positions], device=device),
        num_sequences=len(rows),
        places_N=torch.tensor([row.place + n for row in rows for n in range(len(row.positions))], device=device),
        sampled_logprobs_N=_floats((value for row in rows for value in row.logprobs), device),
        temperatures_N=_floats((value for row in rows for value in row.temperatures), device),
        weighted_advantages_N=_floats((advantage * weight for row in rows for advantage in row.advantages), device),
        num_shared_tokens=num_shared_tokens,
    )


def _floats(values: Iterable[float], device: torch.device) -> Tensor:
    return torch.tensor(list(values), dtype=torch.float32, device=device)
