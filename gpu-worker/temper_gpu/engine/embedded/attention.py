"""Attention over the slot table. A token's bits depend only on its own request, which decides how its keys are read.

Keys are read in chunks of CHUNK, counted from the first token; the rest after the last whole chunk is read with
`num_keys_of` keys. Each read has its own softmax. They are joined by the logarithms of their sums, as in
Flash-Decoding (Dao et al., 2023), in a fixed order: the rest, then chunks from the first on. So a kernel's shape,
queries of a row times keys, depends on a token's position in its request, and not on other requests. The number of
rows depends on them, but rows are computed separately.

Keys that a query does not see have a score of HIDDEN, which is finite: the sum of a row of such keys counts as zero
when it is joined. A sink (gpt-oss: a number of each head that is part of the softmax and has no value) is joined last.

Shapes: R rows of a tile (one slot each), C queries of a row, N keys of a row, H query heads, K key heads, D head size,
M tokens of a forward pass, Q queries of a tile (R times C).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.modeling_utils import AttentionInterface

from temper_gpu.engine.embedded.vectors import elementwise

ATTENTION = "temper_slots"
CHUNK = 256
# Capacities of slots are multiples of this.
KEY_BLOCK = 64
# Smaller than any score, and far from where float32 ends.
HIDDEN = -1e30
# Number of matrices that `plain` multiplies at once: a single one would use another kernel.
MIN_MATRICES = 3
# On a CPU, oneDNN multiplies bfloat16 if all matrices of a product together have more multiplications than this.
# Smaller products use other code, with other last bits.
FEW_MULTIPLICATIONS = 16**3
# Padding of a matrix's queries with several threads: torch's kernel splits one buffer between threads, and matrix
# libraries add in another order if a part does not begin at a cache line.
ALIGNED_QUERIES = 8

flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


class Layer(NamedTuple):
    """Attention parameters of a layer."""

    index: int
    scaling: float
    # Number of tokens that a token sees, itself included; None: all.
    window: int | None
    sinks_H: Tensor | None
    # Scores stay below it in size, by tanh (Gemma 2).
    softcap: float | None


@dataclass(frozen=True)
class Tile:
    """Queries that are attended together, each row's to the same number of keys of one slot."""

    # A view of the slot table, or an index, which copies.
    slots: slice | Tensor
    num_rows: int
    first_key: int
    num_keys: int
    # The smallest of its queries'.
    first_position: int
    # Each query's place in the pass; None if the tile is the pass, with one query a row.
    queries_RC: Tensor | None
    positions_RC: Tensor
    # Whether every query comes after all of the keys.
    is_earlier: bool = False
    # Masks by window, made for the first layer that needs them.
    _masks: dict[int | None, Tensor | None] = field(default_factory=dict)

    def keys(self, table_RKTD: Tensor) -> Tensor:
        rows = table_RKTD[self.slots, :, self.first_key : self.first_key + self.num_keys]
        # A single slot is repeated for all rows.
        return rows if len(rows) == self.num_rows else rows.expand(self.num_rows, -1, -1, -1)

    def is_hidden(self, window: int | None) -> bool:
        """Whether no query sees any of the keys."""
        return window is not None and self.first_key + self.num_keys <= self.first_position - window + 1

    def mask(self, window: int | None) -> Tensor | None:
        """0 where a query sees a key, HIDDEN where not, [R, 1, C, N]; None: each sees all."""
        if window not in self._masks:
            self._masks[window] = self._make_mask(window)
        return self._masks[window]

    def _make_mask(self, window: int | None) -> Tensor | None:
        if self.is_earlier and window is None:
            return None
        return causal_mask(self.positions_RC, self.first_key, self.num_keys, window)


def num_keys_of(num_keys: int) -> int:
    """Number of keys to read for a rest of this length: 32 or a multiple of 64."""
    return 32 if num_keys <= 32 else -(-num_keys // 64) * 64


def causal_mask(positions_RC: Tensor, first_key: int, num_keys: int, window: int | None = None) -> Tensor:
    """A causal mask of `window` tokens, the query included; None: without a limit."""
    keys = torch.arange(first_key, first_key + num_keys, device=positions_RC.device)
    hidden = keys > positions_RC[..., None]
    if window is not None:
        hidden |= keys <= positions_RC[..., None] - window
    return torch.zeros(hidden.shape, device=hidden.device, dtype=torch.float32).masked_fill_(hidden, HIDDEN)[:, None]


class Attended(NamedTuple):
    """The state of attention so far, in fp32: the softmax mean of values, and the logarithm of its sum."""

    output_QHD: Tensor
    logsum_QH: Tensor

    def join(self, other: "Attended", targets_Q: Tensor) -> None:
        """Adds what these queries saw elsewhere."""
        ours_QH = self.logsum_QH[targets_Q]
        both_QH = elementwise(torch.logaddexp, ours_QH, other.logsum_QH)
        share_QH, other_share_QH = (elementwise(torch.exp, sums - both_QH) for sums in (ours_QH, other.logsum_QH))
        output_QHD = self.output_QHD[targets_Q].mul_(share_QH[..., None])
        self.output_QHD[targets_Q] = output_QHD.add_(other.output_QHD.mul(other_share_QH[..., None]))
        self.logsum_QH[targets_Q] = both_QH

    def with_sinks(self, sinks_H: Tensor) -> "Attended":
        sinks_QH = sinks_H.float().expand_as(self.logsum_QH)
        both_QH = elementwise(torch.logaddexp, self.logsum_QH, sinks_QH)
        share_QH = elementwise(torch.exp, self.logsum_QH - both_QH)
        return Attended(self.output_QHD * share_QH[..., None], both_QH)


def attend(query_RCHD: Tensor, key_RKND: Tensor, value_RKND: Tensor, mask: Tensor | None, layer: Layer) -> Attended:
    """Softmax attention of each row over these keys."""
    rows, queries, heads, head_size = query_RCHD.shape
    key_heads = key_RKND.shape[1]
    # Heads that share keys become more queries of one matrix.
    shared = heads // key_heads
    q = query_RCHD.transpose(1, 2).reshape(rows, key_heads, shared * queries, head_size)
    if mask is not None and shared > 1:
        mask = mask.repeat(1, 1, shared, 1)
    is_flash = q.device.type == "cpu" and q.dtype == torch.float32 and layer.softcap is None
    kernel = _flash if is_flash else _plain
    output, logsum = kernel(q, key_RKND, value_RKND, mask, layer)
    output_QHD = output.reshape(rows, heads, queries, head_size).transpose(1, 2).flatten(0, 1)
    return Attended(output_QHD, logsum.reshape(rows, heads, queries).transpose(1, 2).flatten(0, 1))


def _flash(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, layer: Layer) -> tuple[Tensor, Tensor]:
    """torch's own, of which `scaled_dot_product_attention` gives the output alone."""
    num_queries = q.shape[2]
    padding = -num_queries % ALIGNED_QUERIES if torch.get_num_threads() > 1 else 0
    if padding:
        q = F.pad(q, (0, 0, 0, padding))
        mask = None if mask is None else F.pad(mask, (0, 0, 0, padding))
    output, logsum = flash(q, k, v, 0.0, False, attn_mask=mask, scale=layer.scaling)
    return output[:, :, :num_queries], logsum[:, :, :num_queries]


def _plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, layer: Layer) -> tuple[Tensor, Tensor]:
    """Attention without a fused kernel: bfloat16, a GPU, capped scores."""
    rows, key_heads, num_queries, head_size = q.shape
    num_keys = k.shape[2]
    is_little = MIN_MATRICES * num_queries * num_keys * head_size <= FEW_MULTIPLICATIONS
    if is_little and v.device.type == "cpu":
        q, k, v = q.float(), k.float(), v.float()
    matrices = [(each * layer.scaling if each is q else each).flatten(0, 1) for each in (q, k, v)]
    if (missing := MIN_MATRICES - rows * key_heads) > 0:
        matrices = [F.pad(each, (0, 0, 0, 0, 0, missing)) for each in matrices]
    q_BCD, k_BND, v_BND = matrices
    scores_BCN = torch.bmm(q_BCD, k_BND.mT).float()
    if layer.softcap is not None:
        scores_BCN = elementwise(torch.tanh, scores_BCN.div_(layer.softcap)).mul_(layer.softcap)
    if mask is not None:
        scores_BCN[: rows * key_heads].view(rows, key_heads, num_queries, num_keys).add_(mask)
    top_BC1 = scores_BCN.amax(-1, keepdim=True)
    weights_BCN = elementwise(torch.exp, scores_BCN.sub_(top_BC1))
    total_BC1 = weights_BCN.sum(-1, keepdim=True)
    output = torch.bmm(weights_BCN.to(v_BND.dtype), v_BND).float() / total_BC1
    logsum = top_BC1 + elementwise(torch.log, total_BC1)
    shape = (rows, key_heads, num_queries, -1)
    return output[: rows * key_heads].view(shape), logsum[: rows * key_heads].view(shape[:3])


def slot_attention(module, query, key, value, attention_mask, scaling, forward_pass=None, **options):
    """The function that transformers calls in every layer; the cache has stored key and value already."""
    if forward_pass is None:
        raise TypeError("temper_slots attention is called by the engine's forward pass only")
    window, sinks_H, softcap = (options.get(name) for name in ("sliding_window", "s_aux", "softcap"))
    layer = Layer(module.layer_idx, scaling, window, sinks_H, softcap)
    return forward_pass.attend(layer, query), None


AttentionInterface.register(ATTENTION, slot_attention)
