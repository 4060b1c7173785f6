"""Layers that the backward pass recomputes, a third more work, instead of keeping all activations."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.contract import LoraConfig
from temper_gpu.model.layers import expert_layers, experts_per_token
from temper_gpu.model.lora import adapted_layers, target_modules

# Shares of the free memory for the backward pass of a micro-batch. Other programs share a host's memory; a GPU also
# needs room for logits and fragmentation.
MOST_OF_FREE = {"cpu": 0.5, "cuda": 0.8}


def is_recomputed(num_bytes: int, free: int, device: torch.device) -> bool:
    return num_bytes > free * MOST_OF_FREE.get(device.type, 0.5)


def least_free_to_keep(num_bytes: int, device: torch.device) -> int:
    return math.ceil(num_bytes / MOST_OF_FREE.get(device.type, 0.5))


def saved_bytes_per_token(model: PreTrainedModel, lora: LoraConfig | None, dtype: torch.dtype) -> int:
    """Estimates, rather high, what the backward pass keeps of one token (7 billion parameters in bfloat16 on an H200:
    6.06 MB measured, 6.1 estimated). Each linear layer keeps its input and its output; shared inputs count repeatedly,
    which covers the norms before them. Half of the widening layers have an activation behind them. Norms of heads keep
    float32 inputs. Each expert of a token keeps its outputs. Dropout adds a mask and the masked input, DoRA two
    results in float32. In full fine-tuning a norm also keeps its result. `dtype` is that of the computation; an outline
    of a model may have another one."""
    size = dtype.itemsize
    has_dora, has_dropout = (False, False) if lora is None else (lora.dora, lora.dropout > 0)
    layers = [layer for _, layer in adapted_layers(model, target_modules(model, None))]
    if lora is None:
        head = model.get_output_embeddings()
        layers = [module for module in model.modules() if isinstance(module, nn.Linear) and module is not head]
    linear = sum(
        (3 if has_dropout else 1) * size * layer.in_features
        + (_times_written(layer) * size + (8 if has_dora else 0)) * layer.out_features
        for layer in layers
    )
    vectors = [weight for weight in model.parameters() if weight.dim() == 1]
    normed = 0 if lora is not None else sum(size * len(weight) for weight in vectors)
    weights = [weight for experts in expert_layers(model).values() for weight in experts.parameters()]
    # [experts, inputs, outputs], or with the last two swapped.
    written = sum(1.5 * size * sum(weight.shape[1:]) for weight in weights if weight.dim() == 3)
    return int(linear + normed + _normed_heads(model) + experts_per_token(model.config) * written)


def _times_written(layer: nn.Linear) -> float:
    return 1.5 if layer.out_features > layer.in_features else 1


def _normed_heads(model: PreTrainedModel) -> int:
    """Bytes of the float32 inputs of norms of queries and keys."""
    attention: list[Any] = [of for of in model.modules() if hasattr(of, "q_norm") and hasattr(of, "q_proj")]
    return torch.float32.itemsize * sum(of.q_proj.out_features + of.k_proj.out_features for of in attention)


@contextmanager
def computed_again(layers: Iterable[nn.Module]) -> Iterator[None]:
    """Makes a forward pass inside keep only the inputs of these layers."""
    found = [(layer, layer.forward) for layer in layers]
    for layer, forward in found:
        layer.forward = partial(checkpoint, forward, use_reentrant=False)
    try:
        yield
    finally:
        for layer, forward in found:
            layer.forward = forward
