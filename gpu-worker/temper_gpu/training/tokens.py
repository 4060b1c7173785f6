"""Data of each sampled token, independent of the packing.

Shapes: F sampled tokens of the step or of an update, in the order of its rows; N those of one micro-batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from temper_gpu.contract import TrainConfig
from temper_gpu.training.corrections import Correction
from temper_gpu.training.losses import token_weights
from temper_gpu.training.packing import MicroBatch, Packing, Row, pack
from temper_gpu.training.rows import Rows


@dataclass(frozen=True)
class Tokens:
    """Columns on the CPU in float64: a product is rounded once, when it goes to the device.

    `anchors_F`: the log-probabilities that ratios are taken against. `factors_F`: weights of a correction. `kept_F`:
    tokens that a mask leaves. `reference_F`: the reference's log-probabilities, or zeros. `places_F`: among the tokens
    of the step.
    """

    rows: list[Row]
    attempts_F: Tensor
    sequences_F: Tensor
    advantages_F: Tensor
    anchors_F: Tensor
    factors_F: Tensor
    kept_F: Tensor
    reference_F: Tensor
    places_F: Tensor

    @property
    def have_signal(self) -> bool:
        return bool((self.advantages_F * self.factors_F).any())

    def of_rows(self, rows: Rows) -> "Tokens":
        chosen_F = torch.isin(self.attempts_F, torch.tensor(rows.attempts))
        columns = {name: value[chosen_F] for name, value in vars(self).items() if name != "rows"}
        return Tokens(rows=rows.rows, **columns)

    def corrected(self, correction: Correction, scored_F: Tensor) -> "Tokens":
        anchors_F = scored_F if correction.is_weighing else self.anchors_F
        return replace(self, anchors_F=anchors_F, factors_F=correction.factors_F, kept_F=correction.kept_F)


def tokens_of(rows: Rows) -> Tokens:
    sizes = torch.tensor([len(row.positions) for row in rows.rows])
    advantages_F = torch.tensor([value for row in rows.rows for value in row.advantages], dtype=torch.float64)
    return Tokens(
        rows=rows.rows,
        attempts_F=torch.tensor(rows.attempts).repeat_interleave(sizes),
        sequences_F=torch.arange(len(rows.rows)).repeat_interleave(sizes),
        advantages_F=advantages_F,
        anchors_F=torch.tensor([value for row in rows.rows for value in row.logprobs], dtype=torch.float64),
        factors_F=torch.ones_like(advantages_F),
        kept_F=torch.ones_like(advantages_F, dtype=torch.bool),
        reference_F=torch.zeros_like(advantages_F),
        places_F=torch.arange(len(advantages_F)),
    )


class Laid(NamedTuple):
    """A micro-batch with weighted advantages, so that the loss is a plain sum; the weights alone; log μ, which a
    correction may have replaced in the micro-batch; the correction's factors; and the reference's log-probabilities."""

    batch: MicroBatch
    weights_N: Tensor
    sampled_logprobs_N: Tensor
    factors_N: Tensor
    reference_logprobs_N: Tensor


@dataclass(frozen=True)
class Layout:
    """Layout of rows in micro-batches, the same on all ranks."""

    packing: Packing
    max_tokens: int
    device: torch.device
    num_ranks: int = 1


def lay(tokens: Tokens, config: TrainConfig, layout: Layout) -> Iterator[Laid]:
    weights_F = token_weights(config.reduction, tokens.attempts_F, tokens.kept_F, config.reduction_tokens)
    weighted_F = tokens.advantages_F * weights_F * tokens.factors_F
    columns = (weighted_F, weights_F, tokens.anchors_F, tokens.factors_F, tokens.reference_F)
    weighted_F, weights_F, anchors_F, factors_F, reference_F = (each_F.float().to(layout.device) for each_F in columns)
    for batch in pack_all(tokens.rows, layout):
        places_N = batch.places_N
        laid = replace(batch, weighted_advantages_N=weighted_F[places_N], sampled_logprobs_N=anchors_F[places_N])
        yield Laid(laid, weights_F[places_N], batch.sampled_logprobs_N, factors_F[places_N], reference_F[places_N])


def pack_all(rows: Sequence[Row], layout: Layout) -> list[MicroBatch]:
    """Micro-batches whose places count the tokens of these rows in order."""
    ends = accumulate(len(row.positions) for row in rows)
    placed = [replace(row, place=end - len(row.positions)) for row, end in zip(rows, ends, strict=True)]
    return pack_for_ranks(placed, 1, layout)


def pack_for_ranks(rows: list[Row], num_tokens: int, layout: Layout) -> list[MicroBatch]:
    """Makes micro-batches smaller than allowed if otherwise a rank would have none."""
    max_tokens = layout.max_tokens
    batches = pack(rows, num_tokens, max_tokens, layout.device, layout.packing)
    while len(batches) < min(layout.num_ranks, len(rows)) and max_tokens > 1:
        max_tokens = min(max_tokens, len(rows) * max(len(row.token_ids) for row in rows)) // 2
        batches = pack(rows, num_tokens, max_tokens, layout.device, layout.packing)
    return batches
