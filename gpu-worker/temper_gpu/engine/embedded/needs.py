"""The embedded engine's device memory, estimated from a model's shapes."""

from dataclasses import dataclass
from typing import Any

import torch
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.engine.embedded.attention import CHUNK
from temper_gpu.engine.embedded.forward import PAIRED_ON
from temper_gpu.engine.embedded.kv_cache import SlotCache
from temper_gpu.engine.embedded.paired import MAX_PAIRS
from temper_gpu.engine.embedded.policies import LEAST_POLICIES, most_bytes
from temper_gpu.engine.embedded.prefix_cache import PrefixCache
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.engine.embedded.sizes import sizes_for
from temper_gpu.engine.embedded.slots import Slots
from temper_gpu.model.layers import attention_heads
from temper_gpu.model.memory_plan import count_parameters
from temper_gpu.model.models import context_window_of

META = torch.device("meta")
# Of a sampled token, for each one of the vocabulary: three numbers in float32, and one of 8 bytes.
SAMPLED_BYTES = 20


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
    model: PreTrainedModel, dtype: torch.dtype, settings: EmbeddedSettings, context: int, device: torch.device
) -> int:
    """Peak memory of a forward pass and the sampling after it, estimated rather high. Layers reuse the same memory. A
    prompt's pass has the attention of its tokens to a chunk of keys and what is joined of it, in float32, or the
    feed-forward network; a pass that samples for all slots has logits, probabilities and their running sums."""
    config: Any = model.config
    sizes, heads = sizes_for(count_parameters(model), settings.max_pass_tokens, device), attention_heads(config)
    attention = 4 * heads.queries * (4 * CHUNK + 6 * heads.size)
    network = 3 * dtype.itemsize * config.intermediate_size
    prompt = min(sizes.largest, context) * max(attention, network)
    sampled = SAMPLED_BYTES * config.vocab_size * sizes.most_slots(settings.max_slots)
    return max(prompt, sampled) + _paired_bytes(model, dtype, device)


def _paired_bytes(model: PreTrainedModel, dtype: torch.dtype, device: torch.device) -> int:
    """Bytes of one layer's keys and values that a GPU copies together."""
    cache = SlotCache(model.config, dtype, META)
    each = CHUNK * cache.bytes_per_token // model.config.num_hidden_layers
    return MAX_PAIRS * each if device.type in PAIRED_ON else 0
