"""What is known of each sampled token of an update, however a packer lays it.

Shapes: F sampled tokens of the update, in the order of its rows; N those of one micro-batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from temper_gpu.contract import TrainConfig
from temper_gpu.failures import TemperError
from temper_gpu.training.losses import token_weights
from temper_gpu.training.packing import MicroBatch, Row, pack
from temper_gpu.training.rows import Rows

# Places are told as float32, which counts exactly up to here.
MAX_TOKENS = 1 << 24


@dataclass(frozen=True)
class Tokens:
    """On the CPU, in float64: a product is rounded once, when it goes to the device."""

    rows: list[Row]
    attempts_F: Tensor
    advantages_F: Tensor


def tokens_of(rows: Rows) -> Tokens:
    attempts = [attempt for row, attempt in zip(rows.rows, rows.attempts, strict=True) for _ in row.positions]
    advantages = [advantage for row in rows.rows for advantage in row.advantages]
    return Tokens(rows.rows, torch.tensor(attempts), torch.tensor(advantages, dtype=torch.float64))


def lay(tokens: Tokens, config: TrainConfig, device: torch.device) -> Iterator[tuple[MicroBatch, Tensor]]:
    """Micro-batches, whose advantages are weighted, and the weights by themselves: the loss is a plain sum."""
    kept_F = torch.ones_like(tokens.attempts_F)
    weights_F = token_weights(config.reduction or "token", tokens.attempts_F, kept_F, config.reduction_tokens)
    weighted_F = (tokens.advantages_F * weights_F).float().to(device)
    weights_F = weights_F.float().to(device)
    for batch, places_N in placed(tokens.rows, config.micro_batch_tokens, device):
        yield replace(batch, weighted_advantages_N=weighted_F[places_N]), weights_F[places_N]


def placed(rows: list[Row], max_tokens: int, device: torch.device) -> Iterator[tuple[MicroBatch, Tensor]]:
    """Micro-batches, and for each of their tokens its place in the order of rows.

    Packers carry advantages along without reading them; here those are the places."""
    num_tokens = sum(len(row.positions) for row in rows)
    if num_tokens > MAX_TOKENS:
        raise TemperError(
            "BadConfig",
            f"an update can train at most {MAX_TOKENS} sampled tokens, got {num_tokens}; "
            "use more mini-batches, or fewer groups in a step",
        )
    counted = iter(range(num_tokens))
    numbered = [replace(row, advantages=[float(next(counted)) for _ in row.positions]) for row in rows]
    for batch in pack(numbered, 1, max_tokens, device):
        yield batch, batch.weighted_advantages_N.long()
