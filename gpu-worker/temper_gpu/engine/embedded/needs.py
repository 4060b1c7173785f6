"""What an embedded engine needs of its device's memory, reckoned from a model's shapes and the engine's own code.

Shapes: M tokens of a pass, S sampled rows, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from temper_gpu.engine.embedded.activations import instantiate
from temper_gpu.engine.embedded.attention import KEY_BLOCK
from temper_gpu.engine.embedded.forward import Forward
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.pieces import cut, piece_size
from temper_gpu.engine.embedded.policies import AdaptedBase, is_merged
from temper_gpu.engine.embedded.prefix_cache import PrefixCache
from temper_gpu.engine.embedded.sampling import sample_rows, uniforms
from temper_gpu.engine.embedded.settings import EngineSettings
from temper_gpu.engine.embedded.sizes import Sizes, sizes_for
from temper_gpu.engine.embedded.slots import Slots
from temper_gpu.engine.embedded.tiles import MIN_TILE_ROWS
from temper_gpu.model.live_bytes import peak_bytes
from temper_gpu.model.lora import RANK_BLOCK, adapted_layers
from temper_gpu.model.memory_plan import count_parameters
from temper_gpu.model.models import BaseModel, context_window_of
from temper_gpu.model.outlines import shortened, without_numbers

META = torch.device("meta")


@dataclass(frozen=True)
class Capacity:
    """What the key-value cache has room for."""

    bytes_per_token: int
    # Prompt and answer of one request.
    longest_request: int
    # Of requests as long as `context`, how many are decoded at once.
    requests_at_once: int
    # The most that slots and kept prefixes ever take: less than is allowed where requests cannot fill it.
    num_bytes: int


def capacity_of(model: PreTrainedModel, dtype: torch.dtype, settings: EngineSettings, context: int) -> Capacity:
    window = context_window_of(model.config)
    cache = SlotCache(model.config, dtype, META)
    sizes = sizes_for(count_parameters(model), settings.max_pass_tokens)
    max_slots = sizes.most_slots(settings.max_slots)
    prefixes = PrefixCache(cache, settings.kept_prefix_bytes)
    slots = Slots(cache, prefixes, sizes, max_slots, settings.kv_cache_bytes, window)
    most = cache.peak_bytes(max_slots, window) + settings.kept_prefix_bytes
    return Capacity(
        cache.bytes_per_token,
        min(slots.max_tokens, window),
        slots.num_of(min(context, window)),
        min(settings.kv_cache_bytes, most),
    )


def policies_bytes(model: PreTrainedModel, dtype: torch.dtype, targets: list[str], rank: int, num_policies: int) -> int:
    """Copies of the target weights where adapters are merged, else their factors, in whole blocks of ranks."""
    layers = [layer for _, layer in adapted_layers(model, targets)]
    if is_merged(dtype):
        return num_policies * sum(layer.weight.numel() for layer in layers) * dtype.itemsize
    whole_rank = -(-rank // RANK_BLOCK) * RANK_BLOCK
    widths = sum(layer.in_features + layer.out_features for layer in layers)
    return num_policies * widths * whole_rank * dtype.itemsize


def pass_bytes(model: PreTrainedModel, dtype: torch.dtype, settings: EngineSettings, context: int) -> int:
    """The most that a forward pass takes, the sampling after it included. Layers follow one another in the same memory,
    so one of them shows it."""
    sizes = sizes_for(count_parameters(model), settings.max_pass_tokens)
    base = without_numbers(shortened(model.config, 1), dtype, META)
    module = instantiate(base if is_merged(dtype) else AdaptedBase.of(base))
    max_slots = sizes.most_slots(settings.max_slots)
    with torch.inference_mode():
        return max(prefill_bytes(module, base, sizes, context), decode_bytes(module, base, sizes, max_slots))


def prefill_bytes(module: PreTrainedModel, base: BaseModel, sizes: Sizes, num_tokens: int) -> int:
    """The end of a prompt this long, which reads the most keys."""
    cache = SlotCache(base.config, base.dtype, base.device)
    cache.resize(MIN_TILE_ROWS - 1, num_tokens)
    size = piece_size(num_tokens)
    start = max(0, -(-(num_tokens - sizes.largest) // size)) * size
    pieces = cut(np.zeros(num_tokens, dtype=np.int64), 0, start, sizes.largest)
    return peak_bytes(lambda: _sample(Forward(cache, sizes, base.device).prefill(module, pieces)))


def decode_bytes(module: PreTrainedModel, base: BaseModel, sizes: Sizes, num_slots: int) -> int:
    """Of all slots: the vocabulary counts, not the few keys."""
    cache = SlotCache(base.config, base.dtype, base.device)
    cache.resize(num_slots, KEY_BLOCK)
    slots, zeros = np.arange(num_slots), np.zeros(num_slots, dtype=np.int64)
    return peak_bytes(lambda: _sample(Forward(cache, sizes, base.device).decode(module, slots, zeros, zeros)))


def _sample(logits_SV: Tensor) -> None:
    """At a temperature other than 1, which takes a copy."""
    num_rows = len(logits_SV)
    sample_rows(logits_SV, [0.5] * num_rows, uniforms([0] * num_rows, [0] * num_rows))
