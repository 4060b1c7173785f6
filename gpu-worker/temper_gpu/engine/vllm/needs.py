"""The device memory of a vLLM server."""

import torch
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.contract import VLLM_LORA_RANK
from temper_gpu.engine.vllm.settings import VllmSettings
from temper_gpu.model.lora import adapted_layers, target_modules

# vLLM's passes, its CUDA graphs and CUDA's context. An estimate: not tried on a GPU.
PROCESS_BYTES = 4 << 30


def adapters_bytes(model: PreTrainedModel, dtype: torch.dtype, settings: VllmSettings) -> int:
    """Room that it reserves for adapters on every linear layer, at the highest rank."""
    layers = [layer for _, layer in adapted_layers(model, target_modules(model, None))]
    widths = sum(layer.in_features + layer.out_features for layer in layers)
    return settings.max_policies * VLLM_LORA_RANK * widths * dtype.itemsize
