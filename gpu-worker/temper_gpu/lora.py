"""LoRA adapters as values: PEFT's tensor names, reproducible bytes, a seeded start, and the merge into frozen weights.

Knows tensors and names alone; the trainer's modules are PEFT's (training/policy.py).
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from temper_gpu.failures import TemperError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from temper_gpu.models import BaseModel

PREFIX = "base_model.model."
LORA_A, LORA_B = ".lora_A.weight", ".lora_B.weight"


@dataclass(frozen=True)
class Adapter:
    """The adapter whose safetensors file has this sha256."""

    sha256: str
    tensors: dict[str, Tensor]
    rank: int
    alpha: float


def merged_weights(base: "BaseModel", adapter: Adapter) -> dict[str, Tensor]:
    """W + alpha / rank · B A for every adapted matrix, in storage of its own; computed in fp32, kept in W's type."""
    return {
        f"{module}.weight": _merge(base.tensors[f"{module}.weight"], adapter, module)
        for module in adapted_modules(adapter)
    }


def adapted_modules(adapter: Adapter) -> list[str]:
    """Module names as the base model has them, sorted."""
    return sorted(name[len(PREFIX) : -len(LORA_A)] for name in adapter.tensors if name.endswith(LORA_A))


def _merge(weight: Tensor, adapter: Adapter, module: str) -> Tensor:
    a, b = (adapter.tensors[PREFIX + module + end].to(weight.device, torch.float32) for end in (LORA_A, LORA_B))
    return (weight.float() + (adapter.alpha / adapter.rank) * (b @ a)).to(weight.dtype)


def target_modules(model: "PreTrainedModel", wanted: list[str] | None) -> list[str]:
    """Sorted last parts of names: the wanted ones, or those of every linear layer but the output head."""
    linear = {name for name, _ in _linear_layers(model)}
    if wanted is None:
        return sorted({name.rsplit(".", 1)[-1] for name in linear})
    for target in wanted:
        if not any(_is_target(name, [target]) for name in linear):
            known = ", ".join(sorted({name.rsplit(".", 1)[-1] for name in linear}))
            raise TemperError(
                "BadConfig", f"targetModules must name linear layers of the base model, got {target}; use {known}"
            )
    return sorted(wanted)


def initial_tensors(model: "PreTrainedModel", targets: list[str], rank: int, seed: int) -> dict[str, Tensor]:
    """A uniform in ±1/√in (Kaiming with a = √5, as PEFT), each module from a generator of its own; B zero."""
    tensors: dict[str, Tensor] = {}
    for name, layer in _linear_layers(model):
        if not _is_target(name, targets):
            continue
        bound = layer.in_features**-0.5
        generator = torch.Generator().manual_seed(_module_seed(seed, name))
        tensors[PREFIX + name + LORA_A] = torch.empty(rank, layer.in_features).uniform_(
            -bound, bound, generator=generator
        )
        tensors[PREFIX + name + LORA_B] = torch.zeros(layer.out_features, rank)
    return tensors


def adapter_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Reproducible: sorted tensors, one metadata key (several would stand in random order)."""
    return save({name: tensors[name].contiguous() for name in sorted(tensors)}, metadata={"format": "pt"})


def config_bytes(base_model: str, rank: int, alpha: float, targets: Iterable[str]) -> bytes:
    """PEFT's adapter_config.json, written by ourselves: PEFT's order comes from a set and differs in every process."""
    config = {
        "base_model_name_or_path": base_model,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": int(alpha) if alpha == int(alpha) else alpha,
        "lora_dropout": 0.0,
        "peft_type": "LORA",
        "r": rank,
        "target_modules": sorted(targets),
        "task_type": "CAUSAL_LM",
        "use_dora": False,
        "use_rslora": False,
    }
    return (json.dumps(config, indent=2, sort_keys=True) + "\n").encode()


def parse_adapter(adapter: bytes, config: bytes) -> Adapter:
    """Raises StoreCorrupt for bytes that are no adapter."""
    try:
        fields: dict[str, Any] = json.loads(config)
        rank, alpha = int(fields["r"]), float(fields["lora_alpha"])
        return Adapter(hashlib.sha256(adapter).hexdigest(), load(adapter), rank, alpha)
    except (ValueError, KeyError, SafetensorError) as error:
        raise TemperError(
            "StoreCorrupt", f"an adapter must be a safetensors file with PEFT's config, got {error}"
        ) from error


def lora_shape(config: bytes) -> str:
    """An adapter_config.json in words: `rank 16, alpha 32 on k_proj, q_proj of pocket`."""
    try:
        fields: dict[str, Any] = json.loads(config)
        targets = ", ".join(fields["target_modules"])
        return f"rank {fields['r']}, alpha {fields['lora_alpha']} on {targets} of {fields['base_model_name_or_path']}"
    except (ValueError, KeyError) as error:
        raise TemperError("StoreCorrupt", f"an adapter must have PEFT's config, got {error}") from error


def _linear_layers(model: "PreTrainedModel") -> list[tuple[str, nn.Linear]]:
    head = model.get_output_embeddings()
    layers = [
        (name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear) and module is not head
    ]
    return sorted(layers, key=lambda layer: layer[0])


def _is_target(name: str, targets: list[str]) -> bool:
    return any(re.search(rf"(^|\.){re.escape(target)}$", name) for target in targets)


def _module_seed(seed: int, module: str) -> int:
    """A generator per module: adding a module to the targets changes no other module's start."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{module}".encode()).digest()[:7], "big")
