"""Keys and values of prompts' pieces, kept for later requests of the same policy that begin with the same tokens.

A whole piece's numbers depend only on the input of its key's hash (pieces.py), so a copy has the bits that computing
them again would have. Copies are needed because a slot may be reused, moved or emptied meanwhile.

Shapes: L layers, K key heads, C tokens of a piece, D head size.
"""

from collections import OrderedDict
from itertools import takewhile

import torch
from torch import Tensor

from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.pieces import Piece


class PrefixCache:
    """Least recently used out first; of two pieces of one prompt the later one."""

    def __init__(self, cache: SlotCache, max_bytes: int) -> None:
        self._cache = cache
        self.max_bytes = self._limit = max_bytes
        self.num_bytes = 0
        # Keys, then values, of all layers: [2L, K, C, D].
        self._pieces: OrderedDict[bytes, Tensor] = OrderedDict()

    def limit(self, num_bytes: int) -> None:
        """The memory that the slot table leaves, at most `max_bytes`."""
        self._limit = min(self.max_bytes, num_bytes)
        self._evict(0)

    def clear(self) -> None:
        self._pieces.clear()
        self.num_bytes = 0

    def load(self, keys: list[bytes], slot: int, start: int) -> int:
        """Copies the pieces of these keys, up to the first that is not kept, into a slot; returns where they end."""
        found = [self._pieces[key] for key in takewhile(self._pieces.__contains__, keys)]
        if not found:
            return start
        self.touch(keys[: len(found)])
        end = start + sum(piece.shape[2] for piece in found)
        for table, values_KTD in zip(self._cache.tables, torch.cat(found, 2), strict=True):
            table[slot, :, start:end] = values_KTD
        return end

    def keep(self, key: bytes, piece: Piece) -> None:
        """Copies a whole piece that was just computed."""
        if len(piece.tokens) < piece.size or key in self._pieces:
            return
        num_bytes = piece.size * self._cache.bytes_per_token
        if num_bytes > self._limit:
            return
        self._evict(num_bytes)
        views = [table[piece.slot, :, piece.start : piece.end] for table in self._cache.tables]
        self._pieces[key] = torch.stack(views)
        self.num_bytes += num_bytes

    def touch(self, keys: list[bytes]) -> None:
        """They were used, the pieces of one prompt: its first is of use to more prompts than its last."""
        for key in reversed(keys):
            if key in self._pieces:
                self._pieces.move_to_end(key)

    def _evict(self, num_wanted: int) -> None:
        while self.num_bytes + num_wanted > self._limit:
            _, piece = self._pieces.popitem(last=False)
            self.num_bytes -= piece.nbytes
