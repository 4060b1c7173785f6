"""Who sits in which slot, and how much memory the slots may take."""

import heapq

import numpy as np

from temper_gpu.engine.kv_cache import SlotCache
from temper_gpu.engine.requests import Sequence
from temper_gpu.engine.sizes import Sizes

INITIAL_CAPACITY = 64


class Slots:
    """Lowest slots first, so that a decode pass over the first n slots stays small."""

    def __init__(self, cache: SlotCache, sizes: Sizes, max_slots: int, max_bytes: int, context_window: int) -> None:
        self._cache = cache
        self._sizes = sizes
        self._max_slots = max_slots
        self._max_tokens = max_bytes // cache.bytes_per_token
        self._context_window = context_window
        self._free: list[int] = []
        self.sequences: dict[int, Sequence] = {}
        # What a decode pass feeds: each slot's newest token and its position. A slot at rest has zeros; what it writes
        # there is overwritten by its next prompt.
        self.tokens = np.zeros(max_slots, dtype=np.int64)
        self.positions = np.zeros(max_slots, dtype=np.int64)
        self._resize(INITIAL_CAPACITY)

    def take(self, sequence: Sequence) -> bool:
        """Gives the sequence a slot, if there is one of its length within the memory bound."""
        wanted = sequence.num_tokens
        fits = wanted <= self._cache.capacity
        if not self.sequences and self._rows_for(self._cache.capacity) < self._rows_for(max(wanted, INITIAL_CAPACITY)):
            fits = False  # a long request made the table narrow; nobody is in it now, so it may be widened
        if not fits and not self._resize(wanted if not self.sequences else max(wanted, self._cache.capacity)):
            return False
        if not self._free:
            return False
        sequence.slot = heapq.heappop(self._free)
        self.sequences[sequence.slot] = sequence
        return True

    def release(self, sequence: Sequence, is_clean: bool) -> None:
        slot = sequence.slot
        del self.sequences[slot]
        self.tokens[slot] = self.positions[slot] = 0
        heapq.heappush(self._free, slot)
        if not is_clean:
            self._cache.clear(slot)

    def _resize(self, num_tokens: int) -> bool:
        """By doubling, as far as memory and the slots in use allow."""
        top = max(self.sequences, default=-1)
        doubled = min(
            max(INITIAL_CAPACITY, 1 << (num_tokens - 1).bit_length()), max(self._context_window, INITIAL_CAPACITY)
        )
        for capacity in (doubled, num_tokens):
            rows = self._rows_for(capacity)
            if top < rows:
                self._cache.resize(rows, capacity)
                self._free = [slot for slot in range(rows) if slot not in self.sequences]
                return True
        return False

    def _rows_for(self, capacity: int) -> int:
        """The most slots of this capacity within the bound, as a size of a decode pass; the smallest at least."""
        most = min(self._max_slots, self._max_tokens // max(capacity, 1))
        return max((size for size in self._sizes.allowed if size <= most), default=self._sizes.allowed[0])
