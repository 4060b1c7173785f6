"""Attention over the slot table, with one fixed reduction: a token depends on its own slot's keys alone.

Keys are read in blocks of KEY_BLOCK, and blocks are added one after another in order of position. A block that is
wholly masked contributes exact zeros, so a long neighbour, who makes everybody read more blocks, changes no bit.
Keys before a layer's window are masked, too. A sink (of gpt-oss: a number of each head that takes part in the softmax
and has no value) is one more block, after all keys.

Shapes: R rows of a tile (one slot each), C queries of a row, N keys of a row, H query heads, K key heads, D head size,
M tokens of a forward pass.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface

ATTENTION = "temper_slots"
KEY_BLOCK = 16
# At least so many matrices are multiplied at once: a single one would be another kernel's.
MIN_MATRICES = 3
# On a CPU, oneDNN multiplies bfloat16 where all matrices of a product together have more than so many multiplications;
# what is less is multiplied by other code, with other last bits.
FEW_MULTIPLICATIONS = 16**3


class Layer(NamedTuple):
    """Of a model, as its attention is called."""

    index: int
    scaling: float
    # How many tokens a token sees, itself included; None: all.
    window: int | None
    sinks_H: Tensor | None
    # Scores stay below it in size, by tanh (Gemma 2).
    softcap: float | None


@dataclass(frozen=True)
class Tile:
    """Queries that are attended together. `slots` selects the rows' keys: a slice (no copy) or an index."""

    slots: slice | Tensor
    num_keys: int
    # Where each query stands in the pass; None where the tile is the pass, one query a row.
    queries_RC: Tensor | None
    positions_RC: Tensor
    # By a layer's window; made for the first layer that has it.
    _masks: dict[int | None, Tensor] = field(default_factory=dict)

    def mask(self, window: int | None) -> Tensor:
        """0 where a query sees a key, -inf where not; [R, 1, 1, C, N]."""
        if window not in self._masks:
            self._masks[window] = causal_mask(self.positions_RC, self.num_keys, window)
        return self._masks[window]


def causal_mask(positions_RC: Tensor, num_keys: int, window: int | None = None) -> Tensor:
    """Of `window` tokens, a query itself included; None: of all."""
    keys = torch.arange(num_keys, device=positions_RC.device)
    hidden = keys > positions_RC[..., None]
    if window is not None:
        # A query that is padding may stand behind the last key; a softmax over nothing is no number.
        hidden |= keys <= positions_RC[..., None].clamp(max=num_keys - 1) - window
    return torch.zeros(hidden.shape, device=hidden.device).masked_fill_(hidden, -torch.inf)[:, None, None]


def attend(
    query_RHCD: Tensor,
    key_RKND: Tensor,
    value_RKND: Tensor,
    mask: Tensor,
    scaling: float,
    sinks_H: Tensor | None = None,
    softcap: float | None = None,
) -> Tensor:
    """Softmax attention of each row over its own keys; returns [R, H, C, D]."""
    rows, heads, queries, head_size = query_RHCD.shape
    key_heads, num_keys = key_RKND.shape[1:3]
    # Heads that share keys become more queries of one matrix.
    q = (query_RHCD * scaling).reshape(rows * key_heads, -1, head_size)
    k, v = key_RKND.flatten(0, 1), value_RKND.flatten(0, 1)
    if _is_rounded(v) and MIN_MATRICES * _multiplications(q) <= FEW_MULTIPLICATIONS:
        q, k, v = q.float(), k.float(), v.float()
    scores = products(q, k.unflatten(1, (-1, KEY_BLOCK)).mT).float()
    if softcap is not None:
        scores = scores.div_(softcap).tanh_().mul_(softcap)
    scores.view(rows, key_heads, -1, queries, num_keys).add_(mask)
    if sinks_H is not None:
        sink_blocks = F.pad(sinks_H.float()[:, None, None], (0, KEY_BLOCK - 1), value=-torch.inf)
        scores = torch.cat([scores, sink_blocks.expand(rows, -1, queries, -1).reshape(*q.shape[:2], KEY_BLOCK)], -1)
    # Some key is never masked, so the maximum is finite; a maximum is exact in any order.
    weights = scores.sub_(scores.amax(-1, keepdim=True)).exp_().unflatten(-1, (-1, KEY_BLOCK))
    total = add_in_order(weights.sum(-1))
    blocks = v.unflatten(1, (-1, KEY_BLOCK)).unbind(1)
    first, *others = zip(weights.to(v.dtype).unbind(2)[: len(blocks)], blocks, strict=True)
    output = torch.bmm(*first).float()
    for block_weights, block_values in others:
        output = add_product(output, block_weights, block_values)
    return (output / total).to(value_RKND.dtype).view(rows, heads, queries, head_size)


def products(q: Tensor, blocks: Tensor) -> Tensor:
    """Of each row's queries and its blocks of keys. By row where few queries have many keys: it is read in order."""
    num_blocks = blocks.shape[1]
    is_enough = not _is_rounded(q) or num_blocks * _multiplications(q) > FEW_MULTIPLICATIONS
    if q.shape[1] < KEY_BLOCK and len(q) < 4 * num_blocks and is_enough:
        by_row = [torch.bmm(queries.expand(len(keys), -1, -1), keys) for queries, keys in zip(q, blocks, strict=True)]
        return torch.stack(by_row).transpose(1, 2).flatten(2)
    return torch.cat([torch.bmm(q, keys) for keys in blocks.unbind(1)], -1)


def _is_rounded(values: Tensor) -> bool:
    return values.dtype != torch.float32 and values.device.type == "cpu"


def _multiplications(q: Tensor) -> int:
    """Of one row's queries with a block of keys, or of its weights with a block of values."""
    return q.shape[1] * q.shape[2] * KEY_BLOCK


def add_in_order(totals: Tensor) -> Tensor:
    """Along the last axis, one after another; `cumsum` of torch adds in float64."""
    if totals.device.type == "cpu":
        return torch.from_numpy(np.add.accumulate(totals.numpy(), axis=-1)[..., -1:])
    total, *others = totals.unsqueeze(-1).unbind(-2)
    for other in others:
        total = total + other
    return total


def add_product(total: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    """Sums stay in fp32, whatever the model's type is."""
    if values.dtype == torch.float32:
        return total.baddbmm_(weights, values)
    return total.add_(torch.bmm(weights, values))


def slot_attention(module, query, key, value, attention_mask, scaling, forward_pass=None, **options):
    """The function that transformers calls in every layer; the cache has stored key and value already."""
    if forward_pass is None:
        raise TypeError("temper_slots attention is called by the engine's forward pass only")
    window, sinks_H, softcap = (options.get(name) for name in ("sliding_window", "s_aux", "softcap"))
    layer = Layer(module.layer_idx, scaling, window, sinks_H, softcap)
    return forward_pass.attend(layer, query), None


AttentionInterface.register(ATTENTION, slot_attention)
