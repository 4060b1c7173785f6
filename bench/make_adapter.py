"""An adapter of a first step's size on every layer of a model, as a PEFT folder, and the base model's hash."""

import sys
from pathlib import Path

import torch

from temper_gpu.contract import LoraConfig
from temper_gpu.model.lora import adapter_bytes, config_bytes, initial_tensors, target_modules
from temper_gpu.model.models import load_base

RANK = 16


def main(model: str, folder: str) -> None:
    base = load_base("bench", model, torch.float32, torch.device("cpu"))
    module = base.instantiate("eager")
    targets, lora = target_modules(module, None), LoraConfig(rank=RANK, alpha=2.0 * RANK, target_modules=None)
    tensors = initial_tensors(module, targets, RANK, 0)
    moved = {name: tensor if tensor.any() else torch.full_like(tensor, 1e-4) for name, tensor in tensors.items()}
    Path(folder, "adapter_model.safetensors").write_bytes(adapter_bytes(moved))
    Path(folder, "adapter_config.json").write_bytes(config_bytes("bench", lora, targets))
    Path(folder, "base-model.sha256").write_text(base.sha256)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
