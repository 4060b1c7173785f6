"""Forward passes of fixed sizes over a stock transformers model: prefill of prompt pieces, decode of slots.

A pass is M tokens in one row, whoever they belong to: linear layers and norms work token by token, and attention reads
each token's own slot. M is one of the sizes that were proven equal (proof.py): no token feels who else is there.

Shapes: M tokens of a pass, P pieces, R rows of a tile, C queries of a row, S sampled rows, H heads, D head size.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedModel

from temper_gpu.engine.embedded.attention import Layer, Tile, attend
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.pieces import Piece
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.embedded.tiles import TilePlan, plan_decode, plan_prefill
from temper_gpu.failures import TemperError

# Of a pass that is one tile, in rows x keys: more than this costs more than finding each token's place.
MAX_PADDING = 2048


@dataclass(frozen=True)
class ForwardPass:
    """Passed through the model to its attention (attention.py)."""

    cache: SlotCache
    tiles: list[Tile]
    # Where each token of the pass stands among the tiles' outputs; None where they are in order.
    restore_M: Tensor | None = field(default=None)

    def attend(self, layer: Layer, query_1HMD: Tensor) -> Tensor:
        if layer.window != (window := self.cache.windows[layer.index]):
            raise TemperError(
                "BadConfig",
                f"layer {layer.index} must see as many tokens as the model's config says ({window}), but its code says "
                f"{layer.window}; use another model",
            )
        if layer.softcap != self.cache.softcap:
            raise TemperError(
                "BadConfig",
                f"layer {layer.index} must cap its scores as the model's config says ({self.cache.softcap}), but its "
                f"code says {layer.softcap}; use another model",
            )
        head_size = query_1HMD.shape[-1]
        padding = self.cache.aligned_head_size - head_size
        query_MHD = F.pad(query_1HMD[0], (0, padding)).transpose(0, 1) if padding else query_1HMD[0].transpose(0, 1)
        outputs = [self._attend_tile(tile, layer, query_MHD) for tile in self.tiles]
        output = outputs[0] if self.restore_M is None else torch.cat(outputs).index_select(0, self.restore_M)
        return output[None, ..., :head_size]

    def _attend_tile(self, tile: Tile, layer: Layer, query_MHD: Tensor) -> Tensor:
        keys, values = (
            cached[layer.index][tile.slots, :, : tile.num_keys] for cached in (self.cache.keys, self.cache.values)
        )
        query_RCHD = query_MHD[:, None] if tile.queries_RC is None else query_MHD[tile.queries_RC]
        mask = tile.mask(layer.window)
        output_RHCD = attend(
            query_RCHD.transpose(1, 2), keys, values, mask, layer.scaling, layer.sinks_H, layer.softcap
        )
        return output_RHCD.transpose(1, 2).flatten(0, 1)


class Forward:
    """Runs passes of any policy of one base model over one slot table."""

    def __init__(self, cache: SlotCache, sizes: Sizes, device: torch.device) -> None:
        self.cache = cache
        self.sizes = sizes
        self.device = device

    def prefill(self, model: PreTrainedModel, pieces: list[Piece]) -> Tensor:
        """Logits after the last token of each last piece, in the order of `pieces`; further rows are padding."""
        lengths_P = np.array([len(piece.tokens) for piece in pieces])
        first_P = np.cumsum(lengths_P) - lengths_P
        num_tokens = int(lengths_P.sum())
        size = self.sizes.at_least(num_tokens)
        starts_P = np.array([piece.start for piece in pieces])
        tokens_M = self._padded(np.concatenate([piece.tokens for piece in pieces]), size, 0)
        positions_M = self._padded(np.repeat(starts_P - first_P, lengths_P) + np.arange(num_tokens), size, 0)
        slots_P = np.array([piece.slot for piece in pieces])
        slots_M = self._padded(np.repeat(slots_P, lengths_P), size, self.cache.scratch)
        forward_pass = self._pass(plan_prefill(pieces), positions_M)
        ends = [int(first_P[i] + lengths_P[i] - 1) for i, piece in enumerate(pieces) if piece.is_last]
        sampled_S = self._padded(np.array(ends, dtype=np.int64), self.sizes.at_least(len(ends)), 0) if ends else None
        return self._run(model, tokens_M, positions_M, slots_M, forward_pass, sampled_S)

    def decode(self, model: PreTrainedModel, slots: np.ndarray, tokens: np.ndarray, positions: np.ndarray) -> Tensor:
        """Logits of one token in each of these slots, which ascend; further rows are padding."""
        size = self.sizes.at_least(len(slots))
        tokens_M, positions_M = self._padded(tokens, size, 0), self._padded(positions, size, 0)
        slots_M = self._padded(slots, size, self.cache.scratch)
        plans = plan_decode(slots.tolist(), positions.tolist(), self.cache.num_slots, self.cache.num_heads)
        forward_pass = self._whole_pass(plans, slots, positions_M) or self._pass(plans, positions_M)
        return self._run(model, tokens_M, positions_M, slots_M, forward_pass, None, is_sampled=True)

    def _run(
        self,
        model: PreTrainedModel,
        tokens_M: Tensor,
        positions_M: Tensor,
        slots_M: Tensor,
        forward_pass: ForwardPass,
        sampled_S: Tensor | None,
        is_sampled: bool = False,
    ) -> Tensor:
        self.cache.slots_M, self.cache.positions_M = slots_M, positions_M
        keep: Any = 0 if is_sampled else 1 if sampled_S is None else sampled_S
        output = model(
            input_ids=tokens_M[None],
            position_ids=positions_M[None],
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=keep,
            forward_pass=forward_pass,
        )
        return output.logits[0]

    def _padded(self, values: np.ndarray, size: int, padding: int) -> Tensor:
        padded = np.full(size, padding, dtype=np.int64)
        padded[: len(values)] = values
        return torch.from_numpy(padded).to(self.device)

    def _pass(self, plans: list[TilePlan], positions_M: Tensor) -> ForwardPass:
        tiles: list[Tile] = []
        restore_M = np.zeros(len(positions_M), dtype=np.int64)
        num_outputs = 0
        for plan in plans:
            queries_RC = np.zeros((plan.num_rows, plan.num_queries), dtype=np.int64)
            for row, first, length in plan.runs:
                queries_RC[row, :length] = np.arange(first, first + length)
                restore_M[first : first + length] = np.arange(length) + num_outputs + row * plan.num_queries
            num_outputs += queries_RC.size
            index_RC = torch.from_numpy(queries_RC).to(self.device)
            tiles.append(Tile(self._rows(plan), plan.num_keys, index_RC, positions_M[index_RC]))
        return ForwardPass(self.cache, tiles, torch.from_numpy(restore_M).to(self.device))

    def _rows(self, plan: TilePlan) -> slice | Tensor:
        if isinstance(plan.slots, int):
            return slice(plan.slots, plan.slots + plan.num_rows)
        return self._padded(np.array(plan.slots), plan.num_rows, self.cache.scratch)

    def _whole_pass(self, plans: list[TilePlan], slots: np.ndarray, positions_M: Tensor) -> ForwardPass | None:
        """Where the tokens of a pass are one tile, in order: nothing is copied, rows of nobody are padding."""
        first, size, num_keys = int(slots[0]), len(positions_M), plans[0].num_keys
        is_in_order = len(plans) == 1 and int(slots[-1]) - first == len(slots) - 1
        padding = (size - plans[0].num_rows) * num_keys
        if not is_in_order or first + size > self.cache.scratch + 1 or padding > MAX_PADDING:
            return None
        return ForwardPass(self.cache, [Tile(slice(first, first + size), num_keys, None, positions_M[:, None])])
