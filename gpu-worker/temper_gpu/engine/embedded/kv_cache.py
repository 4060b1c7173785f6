"""The slot table: keys and values of every request in flight, one row per slot, behind transformers' Cache interface.

Shapes: R slots, K key heads, T token capacity, D head size, M tokens of a forward pass.
"""

import torch
from torch import Tensor
from transformers.cache_utils import Cache
from transformers.configuration_utils import PreTrainedConfig

from temper_gpu.engine.embedded.attention import KEY_BLOCK
from temper_gpu.failures import TemperError
from temper_gpu.model.layers import attention_heads, attention_windows

HEAD_ALIGNMENT = 16
# Devices that store to tables by rows: deterministic GPU kernels copy a whole table, and back, if its indexed
# dimensions are not adjacent.
FLAT_ON = ("cuda",)


class SlotCache(Cache):
    """Grows by blocks of KEY_BLOCK tokens. One more row than slots exists: padding writes there."""

    def __init__(self, config: PreTrainedConfig, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(layers=[])
        self._num_layers: int = config.num_hidden_layers
        # Keys outside a layer's window are kept; attention masks them.
        self.windows = attention_windows(config)
        self.softcap: float | None = getattr(config, "attn_logit_softcapping", None)
        _, self.num_heads, self._head_size = attention_heads(config)
        # Heads are kept aligned, padded with zeros: where they are not (a head size of 30), what a matrix library adds
        # first depends on the address, and so on the slot.
        self.aligned_head_size = -(-self._head_size // HEAD_ALIGNMENT) * HEAD_ALIGNMENT
        self._dtype = dtype
        self._device = device
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.num_slots = 0
        self.capacity = 0
        # Storage places of the current pass's tokens.
        self._slots_M = self._positions_M = torch.zeros(0, dtype=torch.long, device=device)
        # The same as rows of a table [R x K x T, D].
        self._rows_I: Tensor | None = None

    @property
    def bytes_per_token(self) -> int:
        return 2 * self._num_layers * self.num_heads * self.aligned_head_size * self._dtype.itemsize

    @property
    def tables(self) -> list[Tensor]:
        return [*self.keys, *self.values]

    @property
    def scratch(self) -> int:
        return self.num_slots

    def peak_bytes(self, num_slots: int, capacity: int) -> int:
        """The most memory that a table of this size takes, while a smaller one is turned into it too.

        Tensors are replaced one at a time, so at most one exists twice.
        """
        table = (num_slots + 1) * _whole_blocks(capacity) * self.bytes_per_token
        return table + table // (2 * self._num_layers)

    def max_slots_within(self, num_bytes: int, capacity: int) -> int:
        """The most slots of this capacity whose `peak_bytes` stay within the bound; 0 if there is none."""
        copies = 2 * self._num_layers
        rows = num_bytes * copies // (copies + 1) // (_whole_blocks(max(1, capacity)) * self.bytes_per_token)
        return max(0, rows - 1)

    def resize(self, num_slots: int, capacity: int) -> None:
        """Keeps the contents of the slots that remain. Memory is allocated when it is first written (zeroed lazily)."""
        capacity = _whole_blocks(capacity)
        if (num_slots, capacity) == (self.num_slots, self.capacity):
            return
        rows, tokens = min(num_slots, self.num_slots), min(capacity, self.capacity)
        shape = (num_slots + 1, self.num_heads, capacity, self.aligned_head_size)
        try:
            for table in (self.keys, self.values):
                for layer in range(self._num_layers):
                    new_RKTD = torch.zeros(shape, dtype=self._dtype, device=self._device)
                    if layer < len(table):
                        new_RKTD[:rows, :, :tokens] = table[layer][:rows, :, :tokens]
                        table[layer] = new_RKTD
                    else:
                        table.append(new_RKTD)
        except BaseException:
            self.drop()  # half of it has the new size
            raise
        self.num_slots, self.capacity = num_slots, capacity

    def drop(self) -> None:
        """Frees everything; the next resize begins with an empty table."""
        self.keys, self.values = [], []
        self.num_slots = self.capacity = 0

    def clear(self, slot: int) -> None:
        """Clears rows that may hold NaN: a masked key counts zero times its value, and zero times NaN is NaN."""
        for table_RKTD in self.tables:
            table_RKTD[slot].zero_()

    def copy(self, slot: int, to_slot: int, start: int, end: int) -> None:
        for table_RKTD in self.tables:
            table_RKTD[to_slot, :, start:end] = table_RKTD[slot, :, start:end]

    def place(self, slots_M: Tensor, positions_M: Tensor) -> None:
        """Sets the storage places of the next pass."""
        self._slots_M, self._positions_M = slots_M, positions_M
        if self._device.type in FLAT_ON:
            heads_K = torch.arange(self.num_heads, device=self._device)
            rows_MK = (slots_M[:, None] * self.num_heads + heads_K) * self.capacity + positions_M[:, None]
            self._rows_I = rows_MK.flatten()

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args, **kwargs
    ) -> tuple[Tensor, Tensor]:
        for table, states_1KMD in ((self.keys, key_states), (self.values, value_states)):
            states_MKD, table_RKTD = states_1KMD[0].transpose(0, 1), table[layer_idx]
            if self._rows_I is None:
                table_RKTD[self._slots_M, :, self._positions_M, : self._head_size] = states_MKD
            else:
                flat_ID = table_RKTD.flatten(0, 2)[:, : self._head_size]
                flat_ID.index_copy_(0, self._rows_I, states_MKD.reshape(-1, self._head_size))
        return key_states, value_states

    def require_known(self, layer: int, window: int | None, softcap: float | None) -> None:
        if window != self.windows[layer]:
            raise TemperError(
                "BadConfig",
                f"layer {layer} must see as many tokens as the model's config says ({self.windows[layer]}), but its "
                f"code says {window}; use another model",
            )
        if softcap != self.softcap:
            raise TemperError(
                "BadConfig",
                f"layer {layer} must cap its scores as the model's config says ({self.softcap}), but its code says "
                f"{softcap}; use another model",
            )

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0


def _whole_blocks(capacity: int) -> int:
    return -(-capacity // KEY_BLOCK) * KEY_BLOCK
