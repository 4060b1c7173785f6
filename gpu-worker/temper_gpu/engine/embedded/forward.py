"""Forward passes of fixed sizes over a stock transformers model: prefill of prompt pieces, decode of slots.

A pass is M tokens of any requests in one row: linear layers and norms work token by token, and attention reads each
token's own slot. M is one of the sizes that were proven equal (proof.py), so tokens do not affect each other.

Shapes: M tokens of a pass, P pieces, R rows of a tile, C queries of a row, S sampled rows, H heads, D head size.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.engine.embedded.attention import Attended, Layer, Tile, attend
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.paired import PairedPass, pair
from temper_gpu.engine.embedded.pieces import Piece
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.embedded.tiles import PassPlan, TilePlan, place, plan_decode, plan_prefill

# Size limit of a pass that is one tile, in rows × keys: above it, gathering tokens costs less.
MAX_PADDING = 2048
# Devices with pairs instead of tiles: their kernel launches take longer than the computation.
PAIRED_ON = ("cuda",)


@dataclass(frozen=True)
class ForwardPass:
    """Passed through the model to its attention (attention.py)."""

    cache: SlotCache
    # Tiles that contain each token of the pass once.
    own: list[Tile]
    # Additional key blocks in the order in which they are added, with their tokens.
    earlier: list[tuple[Tile, Tensor]]
    # Each token's place among the outputs of `own`, and one more for padding; None if they are in order.
    restore_M: Tensor | None

    def attend(self, layer: Layer, query_1HMD: Tensor) -> Tensor:
        self.cache.require_known(layer.index, layer.window, layer.softcap)
        head_size = query_1HMD.shape[-1]
        padding = self.cache.aligned_head_size - head_size
        query_MHD = F.pad(query_1HMD[0], (0, padding)).transpose(0, 1) if padding else query_1HMD[0].transpose(0, 1)
        parts = [self._attend_tile(tile, layer, query_MHD) for tile in self.own]
        attended = Attended(*map(torch.cat, zip(*parts, strict=True))) if len(parts) > 1 else parts[0]
        if self.restore_M is not None:
            attended = Attended(*(each.index_select(0, self.restore_M) for each in attended))
        for tile, targets_Q in self.earlier:
            if not tile.is_hidden(layer.window):
                attended.join(self._attend_tile(tile, layer, query_MHD), targets_Q)
        if layer.sinks_H is not None:
            attended = attended.with_sinks(layer.sinks_H)
        num_tokens = query_MHD.shape[0]
        return attended.output_QHD[None, :num_tokens, :, :head_size].to(query_1HMD.dtype)

    def _attend_tile(self, tile: Tile, layer: Layer, query_MHD: Tensor) -> Attended:
        keys, values = (tile.keys(table[layer.index]) for table in (self.cache.keys, self.cache.values))
        query_RCHD = query_MHD[:, None] if tile.queries_RC is None else query_MHD[tile.queries_RC]
        return attend(query_RCHD, keys, values, tile.mask(layer.window), layer)


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

    def decode(
        self,
        model: PreTrainedModel,
        slots: np.ndarray,
        tokens: np.ndarray,
        positions: np.ndarray,
        prefixes: Sequence[Sequence[Hashable]],
    ) -> Tensor:
        """Logits of one token in each of these slots, which ascend; further rows are padding. `prefixes`: names of each
        prompt's whole chunks, equal where their keys are (tiles.py)."""
        size = self.sizes.at_least(len(slots))
        tokens_M, positions_M = self._padded(tokens, size, 0), self._padded(positions, size, 0)
        slots_M = self._padded(slots, size, self.cache.scratch)
        if self.device.type in PAIRED_ON:
            padding = (0, size - len(slots))
            padded_slots = np.pad(slots, padding, constant_values=self.cache.scratch)
            in_pairs = pair(self.cache, padded_slots, np.pad(positions, padding), self.device)
            return self._run(model, tokens_M, positions_M, slots_M, in_pairs, None, is_sampled=True)
        plan = plan_decode(slots.tolist(), positions.tolist(), prefixes)
        forward_pass = self._whole_pass(plan, slots, positions_M) or self._pass(plan, positions_M)
        return self._run(model, tokens_M, positions_M, slots_M, forward_pass, None, is_sampled=True)

    def _run(
        self,
        model: PreTrainedModel,
        tokens_M: Tensor,
        positions_M: Tensor,
        slots_M: Tensor,
        forward_pass: ForwardPass | PairedPass,
        sampled_S: Tensor | None,
        is_sampled: bool = False,
    ) -> Tensor:
        self.cache.place(slots_M, positions_M)
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
        return self._on_device(padded)

    def _pass(self, plan: PassPlan, positions_M: Tensor) -> ForwardPass:
        padding = len(positions_M)
        restore_M = np.zeros(padding + 1, dtype=np.int64)
        own: list[Tile] = []
        num_outputs = 0
        for tile in plan.own:
            places, targets_RC = self._tile(tile, positions_M, padding)
            is_token = targets_RC < padding
            restore_M[targets_RC[is_token]] = np.flatnonzero(is_token) + num_outputs
            num_outputs += targets_RC.size
            own.append(places)
        earlier: list[tuple[Tile, Tensor]] = []
        for tile in plan.chunks:
            places, targets_RC = self._tile(tile, positions_M, padding)
            earlier.append((replace(places, is_earlier=True), self._on_device(targets_RC.reshape(-1))))
        return ForwardPass(self.cache, own, earlier, self._on_device(restore_M))

    def _tile(self, plan: TilePlan, positions_M: Tensor, padding: int) -> tuple[Tile, np.ndarray]:
        """And of its queries, [R, C], which tokens of the pass they are; `padding`: none."""
        placed = place(plan.slots)
        targets_RC = np.full((placed.num_rows, plan.num_queries), padding, dtype=np.int64)
        queries_RC = np.zeros_like(targets_RC)
        for row, tokens in zip(placed.rows, plan.tokens, strict=True):
            queries_RC[row] = tokens[0]
            queries_RC[row, : len(tokens)] = targets_RC[row, : len(tokens)] = tokens
        slots = placed.slots if isinstance(placed.slots, slice) else self._on_device(np.array(placed.slots))
        index_RC = self._on_device(queries_RC)
        keys = (plan.first_key, plan.num_keys, plan.first_position)
        return Tile(slots, placed.num_rows, *keys, index_RC, positions_M[index_RC]), targets_RC

    def _on_device(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(self.device)

    def _whole_pass(self, plan: PassPlan, slots: np.ndarray, positions_M: Tensor) -> ForwardPass | None:
        """A single tile of all tokens in order: nothing is copied, and rows without an owner are padding."""
        first, size, tile = int(slots[0]), len(positions_M), plan.own[0]
        is_in_order = len(plan.own) == 1 and not plan.chunks and int(slots[-1]) - first == len(slots) - 1
        padding = (size - len(slots)) * tile.num_keys
        if not is_in_order or first + size > self.cache.scratch + 1 or padding > MAX_PADDING:
            return None
        view = slice(first, first + size)
        keys = (tile.first_key, tile.num_keys, tile.first_position)
        whole = Tile(view, size, *keys, None, positions_M[:, None])
        return ForwardPass(self.cache, [whole], [], None)
