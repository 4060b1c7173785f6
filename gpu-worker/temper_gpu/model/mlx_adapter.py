"""Adapters as mlx-lm loads them (`mlx_lm.tuner.utils.load_adapters`, 0.32): matrices transposed, the scale as a number.

Shapes: I inputs, O outputs, R rank.
"""

import json

from safetensors.torch import save
from torch import Tensor

from temper_gpu.model.lora import LORA_A, LORA_B, MAGNITUDE, PREFIX, Adapter, adapted_modules

WEIGHTS_FILE, CONFIG_FILE = "adapters.safetensors", "adapter_config.json"
OF_LAYER = "model.layers."


def mlx_files(adapter: Adapter, num_layers: int) -> dict[str, bytes]:
    """`num_layers`: of the base model."""
    return {WEIGHTS_FILE: _weights(adapter), CONFIG_FILE: _config(adapter, num_layers)}


def _weights(adapter: Adapter) -> bytes:
    tensors: dict[str, Tensor] = {}
    for module in adapted_modules(adapter):
        tensors[f"{module}.lora_a"] = adapter.tensors[PREFIX + module + LORA_A].T.contiguous()
        tensors[f"{module}.lora_b"] = adapter.tensors[PREFIX + module + LORA_B].T.contiguous()
        magnitudes_O = adapter.tensors.get(PREFIX + module + MAGNITUDE)
        if magnitudes_O is not None:
            tensors[f"{module}.m"] = magnitudes_O
    return save({name: tensors[name] for name in sorted(tensors)}, metadata={"format": "mlx"})


def _config(adapter: Adapter, num_layers: int) -> bytes:
    modules = adapted_modules(adapter)
    in_layers = [module.removeprefix(OF_LAYER).split(".", 1) for module in modules if module.startswith(OF_LAYER)]
    leaves = {leaf for _, leaf in in_layers}
    # Keys within a layer are of every layer. Else each module is named: mlx-lm finds them by their whole names.
    is_everywhere = len(in_layers) == len(modules) == len(leaves) * num_layers
    has_magnitudes = any(name.endswith(MAGNITUDE) for name in adapter.tensors)
    config = {
        "fine_tune_type": "dora" if has_magnitudes else "lora",
        "num_layers": num_layers,
        "lora_parameters": {
            "rank": adapter.rank,
            "scale": adapter.scale,
            "dropout": 0.0,
            "keys": sorted(leaves) if is_everywhere else modules,
        },
    }
    return (json.dumps(config, indent=2, sort_keys=True) + "\n").encode()
