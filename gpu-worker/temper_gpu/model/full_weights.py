"""All weights of a model as values: what full fine-tuning trains, commits and samples from.

They are stored in float32, also if the base model has another type: below float32 the type's last place is larger than
most updates. Computations in a smaller type round them once.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from temper_gpu.failures import TemperError

if TYPE_CHECKING:
    from temper_gpu.model.models import BaseModel

DTYPE = torch.float32


@dataclass(frozen=True)
class FullWeights:
    """The weights whose safetensors file has this sha256, by their names in the base model; tied ones once."""

    sha256: str
    tensors: Mapping[str, Tensor]


def initial_weights(base: "BaseModel") -> dict[str, Tensor]:
    """The base model's own."""
    require_whole_weights(base)
    return {name: base.tensors[name].to(DTYPE) for name in base.parameter_names}


def require_whole_weights(base: "BaseModel") -> None:
    if base.packed:
        raise TemperError(
            "BadConfig",
            f"a run that trains all weights must have them whole, but {base.name} is loaded in 4 bits; start the GPU "
            "worker without --load-in-4bit, or leave --full-fine-tuning out",
        )


def weight_shapes(base: "BaseModel") -> dict[str, torch.Size]:
    return {name: base.tensors[name].shape for name in base.parameter_names}


def replaced_weights(base: "BaseModel", weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights for `BaseModel.instantiate`: by each of their names, on the base model's device and rounded to its
    type."""
    require_weights(base, "a policy", weights)
    replaced: dict[str, Tensor] = {}
    for name, names in base.parameter_names.items():
        own = base.tensors[name]
        replaced |= dict.fromkeys(names, weights[name].to(own.device, own.dtype))
    return replaced


def require_weights(base: "BaseModel", what: str, weights: Mapping[str, Tensor]) -> None:
    wanted = weight_shapes(base)
    found = {name: tensor.shape for name, tensor in weights.items()}
    if found == wanted:
        return
    odd = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    raise TemperError(
        "BadConfig",
        f"{what} must have all {len(wanted)} weights of {base.name}, but {odd[0]} differs ({len(found)} tensors); use "
        "a checkpoint of a run with --full-fine-tuning on the same base model",
    )


def full_config_bytes(base_model: str) -> bytes:
    """Replaces PEFT's config."""
    config = {"base_model_name_or_path": base_model, "full_fine_tuning": True}
    return (json.dumps(config, indent=2, sort_keys=True) + "\n").encode()


def parse_full_weights(data: bytes) -> FullWeights:
    """Raises StoreCorrupt for bytes that are none."""
    try:
        return FullWeights(hashlib.sha256(data).hexdigest(), load(data))
    except SafetensorError as error:
        raise TemperError(
            "StoreCorrupt", f"the weights of a checkpoint must be a safetensors file, got {error}"
        ) from error
