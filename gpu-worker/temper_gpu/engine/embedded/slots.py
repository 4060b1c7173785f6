"""The assignment of requests to slots, and the memory that the slots may take."""

import heapq

import numpy as np

from temper_gpu.engine.embedded.attention import KEY_BLOCK
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.prefix_cache import PrefixCache
from temper_gpu.engine.embedded.requests import Sequence
from temper_gpu.engine.embedded.sizes import Sizes
from temper_gpu.engine.embedded.tiles import MIN_TABLE_ROWS
from temper_gpu.failures import TemperError
from temper_gpu.model.memory import format_bytes

INITIAL_CAPACITY = 64


class Slots:
    """Lowest slots first, so that those in use are one after another.

    The slot table never takes more than `max_bytes`, its own resizing included. It leaves free what `prefixes` may
    take, unless not even the smallest table fits then: no request is refused because of kept prefixes. The longest
    request (`max_tokens`) is what fits into the fewest slots.

    Requests begin with little room, and slots get longer when an answer needs it. Where memory does not allow that,
    a request has to leave (scheduler.py).
    """

    def __init__(
        self,
        cache: SlotCache,
        prefixes: PrefixCache,
        sizes: Sizes,
        max_slots: int,
        max_bytes: int,
        context_window: int,
    ) -> None:
        self._cache = cache
        self._prefixes = prefixes
        self._sizes = sizes
        self._max_slots = max_slots
        self._max_bytes = max_bytes
        self._context_window = context_window
        self.max_tokens = self._longest_request()
        self._free: list[int] = []
        self.sequences: dict[int, Sequence] = {}
        # Inputs of a decode pass: each slot's newest token and its position, the number of tokens stored before it.
        # Free slots have zeros.
        self.tokens = np.zeros(max_slots, dtype=np.int64)
        self.positions = np.zeros(max_slots, dtype=np.int64)
        self._resize(min(INITIAL_CAPACITY, self.max_tokens))

    @property
    def fewest(self) -> int:
        """Slots of the smallest table: with the one for padding, rows of a whole tile."""
        return MIN_TABLE_ROWS - 1

    def bytes_of(self, num_tokens: int) -> int:
        """Bytes of the smallest table that fits a request of this length."""
        return self._cache.peak_bytes(self.fewest, num_tokens)

    def take(self, sequence: Sequence) -> bool:
        """Gives the sequence a slot, if there is one with room for it to begin."""
        wanted = sequence.next_room
        if self.sequences and not self._free:
            self._narrow(wanted)
        fits = wanted <= self._cache.capacity
        least = min(INITIAL_CAPACITY, self.max_tokens)
        if not self.sequences and self.num_of(self._cache.capacity) < self.num_of(max(wanted, least)):
            fits = False  # a long request made the table narrow; it is empty now, so it may be widened
        if not fits:
            self.compact()
            fits = self._resize(max(wanted, self._cache.capacity) if self.sequences else wanted)
        if not fits or not self._free:
            return False
        sequence.slot = heapq.heappop(self._free)
        self.sequences[sequence.slot] = sequence
        return True

    def _narrow(self, wanted: int) -> None:
        """More and shorter slots, once none that runs needs half of a slot: a long request left them so long."""
        needed = max(wanted, INITIAL_CAPACITY, *(sequence.next_room for sequence in self.sequences.values()))
        if 2 * needed <= self._cache.capacity and self.num_of(needed) > self.num_of(self._cache.capacity):
            self.compact()
            self._resize(needed)

    def has_room(self, num_tokens: int) -> bool:
        """Makes slots this long, if those in use can stay."""
        if num_tokens <= self._cache.capacity:
            return True
        self.compact()
        return self._resize(num_tokens)

    def compact(self) -> None:
        """Moves sequences down into free slots, so that those in use are the first ones."""
        sequences = list(self.sequences.values())
        for sequence in sorted(sequences, key=lambda sequence: -sequence.slot):
            slot = sequence.slot
            if not self._free or self._free[0] > slot:
                break
            sequence.slot = heapq.heapreplace(self._free, slot)
            self._cache.copy(slot, sequence.slot, 0, int(self.positions[slot]))
            for row in (self.tokens, self.positions):
                row[sequence.slot], row[slot] = row[slot], 0
        self.sequences = {sequence.slot: sequence for sequence in sequences}

    def clear(self) -> list[Sequence]:
        """Empties and frees the table and the kept prefixes; returns the sequences that were in it."""
        dropped = list(self.sequences.values())
        self._prefixes.clear()
        self.sequences.clear()
        self.tokens[:] = self.positions[:] = 0
        self._cache.drop()
        self._free = []
        return dropped

    def release(self, sequence: Sequence, is_clean: bool) -> None:
        slot = sequence.slot
        del self.sequences[slot]
        self.tokens[slot] = self.positions[slot] = 0
        heapq.heappush(self._free, slot)
        if not is_clean:
            self._cache.clear(slot)

    def _resize(self, num_tokens: int) -> bool:
        """Doubles the table, as far as memory and the slots in use allow."""
        top = max(self.sequences, default=-1)
        doubled = min(
            max(INITIAL_CAPACITY, 1 << (num_tokens - 1).bit_length()), max(self._context_window, INITIAL_CAPACITY)
        )
        for capacity in (doubled, num_tokens):
            rows = self.num_of(capacity)
            if max(top, 0) < rows:
                self._prefixes.limit(self._max_bytes - self._cache.peak_bytes(rows, capacity))
                self._cache.resize(rows, capacity)
                self._free = [slot for slot in range(rows) if slot not in self.sequences]
                return True
        return False

    def num_of(self, capacity: int) -> int:
        """The most slots of this capacity within the bound; 0 if not even the fewest."""
        left = self._max_bytes - self._prefixes.max_bytes
        most = min(self._max_slots, self._cache.max_slots_within(left, capacity))
        fits = self._cache.max_slots_within(self._max_bytes, capacity) >= self.fewest
        numbers = (*range(self.fewest, self._sizes.allowed[0], MIN_TABLE_ROWS), *self._sizes.allowed)
        return max((number for number in numbers if number <= most), default=self.fewest if fits else 0)

    def _longest_request(self) -> int:
        """Tokens of a slot in a table of the fewest slots that takes all of the memory."""
        blocks = self._max_bytes // self._cache.peak_bytes(self.fewest, KEY_BLOCK)
        while blocks and not self.num_of(blocks * KEY_BLOCK):
            blocks -= 1  # rounding
        if not blocks:
            raise TemperError(
                "BadConfig",
                f"the key-value cache must hold {self.fewest} requests of {KEY_BLOCK} tokens "
                f"({format_bytes(self.bytes_of(KEY_BLOCK))}), but may take only {format_bytes(self._max_bytes)}; "
                "raise --kv-cache-bytes (engine.kvCacheBytes in temporal.config.ts)",
            )
        return blocks * KEY_BLOCK
