"""Dropout of an adapter's inputs, the same for every layout, micro-batch and device.

The dropped inputs depend only on the step's seed, the adapted layer, and the tokens of a sequence up to the current
one. So trees can compute a shared token once: sequences with a common prefix drop the same inputs there.

Shapes: B rows, T padded tokens, M = B · T, I inputs.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from temper_gpu.training.packing import MicroBatch

# Inputs whose masks exist at once.
MAX_MASKED = 1 << 22
# Knuth's multiplicative hash, and the finaliser of "Prospecting for Hash Functions" (lowbias32), as signed numbers.
_STRIDE, _FIRST, _SECOND = -0x61C88647, 0x7FEB352D, -0x7B935975


@dataclass
class Dropping:
    """State that the layers of a model read. Without a seed nothing is dropped."""

    seed: str | None = None
    keys_M: NDArray[np.uint64] | None = None


class PrefixDropout(nn.Module):
    """Replaces PEFT's `nn.Dropout` in one layer."""

    def __init__(self, share: float, name: str, dropping: Dropping) -> None:
        super().__init__()
        self._share = share
        self._name = name
        self._dropping = dropping

    def forward(self, x: Tensor) -> Tensor:
        seed, keys_M = self._dropping.seed, self._dropping.keys_M
        if seed is None or keys_M is None:
            return x
        digest = hashlib.sha256(f"{seed}/{self._name}".encode()).digest()
        own_M = torch.from_numpy(_mixed(keys_M ^ np.uint64(int.from_bytes(digest[:8], "big"))).astype(np.int64))
        kept_MI = kept(own_M, x.shape[-1], self._share, x.device)
        return x * kept_MI.view(x.shape).to(x.dtype) * (1 / (1 - self._share))


def kept(keys_M: Tensor, num_inputs: int, share: float, device: torch.device) -> Tensor:
    """True for the inputs of each token that stay, all but about `share` of them."""
    low_M1 = keys_M.to(torch.int32).to(device)[:, None]
    steps_I = (torch.arange(num_inputs) * _STRIDE).to(torch.int32).to(device)
    threshold = round(share * 2**32) - 2**31
    chunk = max(1, MAX_MASKED // num_inputs)
    return torch.cat([_finalised(part_M1 + steps_I) >= threshold for part_M1 in low_M1.split(chunk)])


def prefix_keys(batch: MicroBatch) -> NDArray[np.uint64]:
    """[M]: for each token, a hash of its sequence up to it. Padding has meaningless values."""
    ids_BT = batch.token_ids_BT.cpu().numpy().astype(np.uint64)
    positions_BT = batch.positions_BT.cpu().numpy().astype(np.uint64)
    sums_BT = _mixed(ids_BT << np.uint64(32) | positions_BT).cumsum(1, dtype=np.uint64)
    if batch.attention.is_chains:
        return sums_BT.reshape(-1)
    [keys_T] = sums_BT.copy()
    for _, start, length, parent in batch.attention.segments:
        before = np.uint64(0) if start == 0 else sums_BT[0, start - 1]
        above = np.uint64(0) if parent is None else keys_T[batch.attention.segments[parent].stop - 1]
        # Overflow of 64 bits is intended.
        keys_T[start : start + length] += np.array(above) - np.array(before)
    return keys_T


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit depends on every other (the finaliser of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _finalised(values: Tensor) -> Tensor:
    """A finaliser in 32 bits; the masks remove the sign that right shifts carry along."""
    values = (values ^ ((values >> 16) & 0xFFFF)) * _FIRST
    values = (values ^ ((values >> 15) & 0x1FFFF)) * _SECOND
    return values ^ ((values >> 16) & 0xFFFF)
