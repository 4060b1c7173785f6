"""A decode pass on a GPU, whose time is that of its launches: all chunks of keys of all tokens are attended at once.

A token and a chunk of its keys are a pair, also the token's own chunk, which has the size of the others here. All
pairs of a pass are rows of one product, in which no row depends on another. Their keys are copied together first, which
a GPU does faster than it starts a kernel for each chunk. A token's chunks are joined in order, the first one first, so
that additional chunks of other tokens change nothing (attention.py).

Shapes: P pairs, M tokens of a pass, C chunks of the token that has most, N keys of a chunk, H query heads, K key heads,
D head size.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from temper_gpu.engine.embedded.attention import CHUNK, Attended, Layer, attend, causal_mask
from temper_gpu.engine.embedded.kv_cache import SlotCache

# Copied at once: of a model of 7 billion parameters, 256 MiB of keys and as much of values.
MAX_PAIRS = 1024
# Devices that compute pairs: they have one kernel for a product and its softmax sum.
FUSED_ON = ("cuda",)


@dataclass(frozen=True)
class Pairs:
    tokens_P: Tensor
    # Rows of the slot table, as [R x K x T, D].
    rows_PKN: Tensor
    first_keys_P: Tensor
    positions_P: Tensor
    # Masks by window, made for the first layer that needs them.
    _masks: dict[object, Tensor] = field(default_factory=dict)

    def mask(self, window: int | None) -> Tensor:
        """[P, 1, 1, N]"""
        if window not in self._masks:
            ahead_P1 = (self.positions_P - self.first_keys_P)[:, None]
            self._masks[window] = causal_mask(ahead_P1, 0, CHUNK, window)
        return self._masks[window]

    def rows_of_mask(self, window: int | None, num_rows: int, dtype: torch.dtype) -> Tensor:
        """[P, 1, rows, N]"""
        key = window, num_rows, dtype
        if key not in self._masks:
            self._masks[key] = self.mask(window).to(dtype).expand(-1, -1, num_rows, -1).contiguous()
        return self._masks[key]


@dataclass(frozen=True)
class PairedPass:
    cache: SlotCache
    parts: list[Pairs]
    # Places of a token's chunks among all pairs; the one after the last for missing chunks.
    places_CM: Tensor

    def attend(self, layer: Layer, query_1HMD: Tensor) -> Tensor:
        self.cache.require_known(layer.index, layer.window, layer.softcap)
        head_size = query_1HMD.shape[-1]
        query_MHD = F.pad(query_1HMD[0], (0, self.cache.aligned_head_size - head_size)).transpose(0, 1)
        parts = [self._attend_part(part, layer, query_MHD) for part in self.parts]
        seen = Attended(*map(torch.cat, zip(*parts, strict=True))) if len(parts) > 1 else parts[0]
        attended = self._join(seen)
        if layer.sinks_H is not None:
            attended = attended.with_sinks(layer.sinks_H)
        return attended.output_QHD[None, :, :, :head_size].to(query_1HMD.dtype)

    def _attend_part(self, part: Pairs, layer: Layer, query_MHD: Tensor) -> Attended:
        query_PHD = query_MHD.index_select(0, part.tokens_P)
        keys, values = (
            table[layer.index].flatten(0, 2).index_select(0, part.rows_PKN.flatten()).view(*part.rows_PKN.shape, -1)
            for table in (self.cache.keys, self.cache.values)
        )
        if query_PHD.device.type in FUSED_ON and layer.softcap is None:
            return _fused(query_PHD, keys, values, part, layer)
        return attend(query_PHD[:, None], keys, values, part.mask(layer.window), layer)

    def _join(self, seen: Attended) -> Attended:
        """A further column counts the weights."""
        output_PHE = F.pad(seen.output_QHD, (0, 1, 0, 0, 0, 1), value=1.0)
        logsum_CMH = F.pad(seen.logsum_QH, (0, 0, 0, 1), value=-torch.inf)[self.places_CM]
        top_MH = logsum_CMH.amax(0)
        weights_CMH1 = (logsum_CMH - top_MH).exp_()[..., None]
        output_CMHE = output_PHE[self.places_CM]
        sum_MHE = output_CMHE[0] * weights_CMH1[0]
        for chunk in range(1, len(self.places_CM)):
            sum_MHE.addcmul_(output_CMHE[chunk], weights_CMH1[chunk])
        total_MH1 = sum_MHE[..., -1:]
        return Attended(sum_MHE[..., :-1] / total_MH1, top_MH + total_MH1[..., 0].log())


def _fused(query_PHD: Tensor, key_PKND: Tensor, value_PKND: Tensor, part: Pairs, layer: Layer) -> Attended:
    """PyTorch's own, of which `scaled_dot_product_attention` gives the output alone."""
    num_pairs, num_heads, head_size = query_PHD.shape
    key_heads = key_PKND.shape[1]
    # Heads that share keys become queries of one matrix.
    shared = num_heads // key_heads
    query_PKSD = query_PHD.view(num_pairs, key_heads, shared, head_size)
    added = part.rows_of_mask(layer.window, shared, query_PHD.dtype).expand(-1, key_heads, -1, -1)
    output_PKSD, logsum_PKS, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(
        query_PKSD, key_PKND, value_PKND, added, True, scale=layer.scaling
    )
    # Room for a multiple of queries comes with it.
    logsum_PH = logsum_PKS[:, :, :shared].reshape(num_pairs, num_heads)
    return Attended(output_PKSD.reshape(num_pairs, num_heads, head_size).float(), logsum_PH.float())


def pair(cache: SlotCache, slots_M: np.ndarray, positions_M: np.ndarray, device: torch.device) -> PairedPass:
    counts_M = positions_M // CHUNK + 1
    firsts_M = np.cumsum(counts_M) - counts_M
    num_pairs = int(counts_M.sum())
    tokens_P = np.repeat(np.arange(len(slots_M)), counts_M)
    chunks_P = np.arange(num_pairs) - firsts_M[tokens_P]
    keys_PN = np.minimum(chunks_P[:, None] * CHUNK + np.arange(CHUNK), cache.capacity - 1)
    chunks_C = np.arange(int(counts_M.max()))[:, None]
    places_CM = np.where(chunks_C < counts_M, firsts_M + chunks_C, num_pairs)
    # Values that derive from few numbers are computed on the device that reads them.
    on_device = [torch.from_numpy(each).to(device) for each in (tokens_P, slots_M[tokens_P], chunks_P * CHUNK, keys_PN)]
    tokens, slots, first_keys, keys = on_device
    heads_K = torch.arange(cache.num_heads, device=device)
    rows_PK = (slots[:, None] * cache.num_heads + heads_K) * cache.capacity
    positions = torch.from_numpy(positions_M[tokens_P]).to(device)
    whole = (tokens, rows_PK[:, :, None] + keys[:, None], first_keys, positions)
    parts = [Pairs(*each) for each in zip(*(of.split(MAX_PAIRS) for of in whole), strict=True)]
    return PairedPass(cache, parts, torch.from_numpy(places_CM).to(device))
