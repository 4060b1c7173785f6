"""The embedded engine's device memory, computed from a model's shapes and the engine's own code.

Shapes: M tokens of a pass, S sampled rows, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.engine.embedded.adapted import AdaptedModel
from temper_gpu.engine.embedded.attention import CHUNK, KEY_BLOCK
from temper_gpu.engine.embedded.forward import PAIRED_ON, Forward
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.paired import MAX_PAIRS
from temper_gpu.engine.embedded.pieces import cut, piece_size
from temper_gpu.engine.embedded.policies import LEAST_POLICIES, most_bytes
from temper_gpu.engine.embedded.prefix_cache import PrefixCache
from temper_gpu.engine.embedded.sampling import sample_rows, uniforms
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.embedded.sizes import Sizes, sizes_for
from temper_gpu.engine.embedded.slots import Slots
from temper_gpu.engine.embedded.tiles import MIN_TABLE_ROWS
from temper_gpu.model.alike_routing import AlikeRouting
from temper_gpu.model.layers import few_layers
from temper_gpu.model.live_bytes import peak_bytes
from temper_gpu.model.memory_plan import count_parameters
from temper_gpu.model.models import BaseModel, context_window_of
from temper_gpu.model.outlines import shortened, without_numbers

META = torch.device("meta")


@dataclass(frozen=True)
class Capacity:
    """The number of tokens and requests that fit into the key-value cache."""

    bytes_per_token: int
    # Prompt and answer of one request.
    longest_request: int
    # Requests of length `context` that are decoded at once.
    requests_at_once: int
    # The most that slots and kept prefixes ever take: less than is allowed where requests cannot fill it.
    num_bytes: int


def capacity_of(
    model: PreTrainedModel, dtype: torch.dtype, settings: EmbeddedSettings, context: int, device: torch.device
) -> Capacity:
    window = context_window_of(model.config)
    cache = SlotCache(model.config, dtype, META)
    sizes = sizes_for(count_parameters(model), settings.max_pass_tokens, device)
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


@dataclass(frozen=True)
class LoadedPolicies:
    """The most that are kept loaded, of one kind."""

    count: int
    bytes_each: int


def loaded_policies(model: PreTrainedModel, dtype: torch.dtype, each: int, max_policies: int) -> LoadedPolicies:
    """`each`: what one takes."""
    most = min(max_policies, most_bytes(count_parameters(model) * dtype.itemsize) // each)
    return LoadedPolicies(max(min(LEAST_POLICIES, max_policies), most), each)


def pass_bytes(
    model: PreTrainedModel,
    dtype: torch.dtype,
    settings: EmbeddedSettings,
    context: int,
    merged: bool,
    device: torch.device,
) -> int:
    """Peak memory of a forward pass and the sampling after it. Layers reuse the same memory, so it is measured on one
    layer of each kind, and one more that starts with the memory that the layer before it left."""
    sizes = sizes_for(count_parameters(model), settings.max_pass_tokens, device)
    num_layers = min(few_layers(model)[0] + 1, model.config.num_hidden_layers)
    base = without_numbers(shortened(model.config, num_layers), dtype, META)
    module = trial_module(base, merged)
    max_slots = sizes.most_slots(settings.max_slots)
    with torch.inference_mode(), AlikeRouting(model.config):
        decode = decode_bytes(module, base, sizes, max_slots) + paired_bytes(base, device)
        return max(prefill_bytes(module, base, sizes, context), decode)


def trial_module(base: BaseModel, merged: bool) -> PreTrainedModel:
    """The base model, if adapters are merged: their passes are like its own."""
    model = AdaptedModel(base)
    return model.for_pass(None) if merged else model.for_trial_pass()


def prefill_bytes(module: PreTrainedModel, base: BaseModel, sizes: Sizes, num_tokens: int) -> int:
    """The end of a prompt this long, which reads the most keys."""
    cache = SlotCache(base.config, base.dtype, base.device)
    cache.resize(MIN_TABLE_ROWS - 1, num_tokens)
    size = piece_size(num_tokens)
    start = max(0, -(-(num_tokens - sizes.largest) // size)) * size
    pieces = cut(np.zeros(num_tokens, dtype=np.int64), 0, start, sizes.largest)
    return peak_bytes(lambda: _sample(Forward(cache, sizes, base.device).prefill(module, pieces)))


def decode_bytes(module: PreTrainedModel, base: BaseModel, sizes: Sizes, num_slots: int) -> int:
    """Bytes of decoding all slots: the vocabulary dominates, not the few keys."""
    cache = SlotCache(base.config, base.dtype, base.device)
    cache.resize(num_slots, KEY_BLOCK)
    slots, zeros = np.arange(num_slots), np.zeros(num_slots, dtype=np.int64)
    prefixes = [()] * num_slots
    return peak_bytes(lambda: _sample(Forward(cache, sizes, base.device).decode(module, slots, zeros, zeros, prefixes)))


def paired_bytes(base: BaseModel, device: torch.device) -> int:
    """Bytes of one layer's keys and values that a GPU copies together."""
    cache = SlotCache(base.config, base.dtype, META)
    each = CHUNK * cache.bytes_per_token // base.config.num_hidden_layers
    return MAX_PAIRS * each if device.type in PAIRED_ON else 0


def _sample(logits_SV: Tensor) -> None:
    """Samples at a temperature other than 1, which takes a copy."""
    num_rows = len(logits_SV)
    sample_rows(logits_SV, [0.5] * num_rows, uniforms([0] * num_rows, [0] * num_rows))
