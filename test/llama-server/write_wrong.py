"""write_wrong.py STORE POLICY FOLDER MODELS KIND: a GGUF file of what a server may have in place of a policy.

It is made of another adapter, or of other weights below it, and merged and written as `temper export` does.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from temper_gpu.model.gguf_file import NUMBER_TYPES
from temper_gpu.model.gguf_model import write_model
from temper_gpu.model.lora import Adapter
from temper_gpu.model.merging import merge
from temper_gpu.model.models import BaseModel
from temper_gpu.process.export import find_policy, load_trained_base

SEED = 7
# Share of a matrix's own deviation. The model still answers in words.
NOISE = 0.1
MLP = ("gate_proj", "up_proj", "down_proj")


def main(store: str, name: str, folder: str, models: str, kind: str) -> None:
    source = find_policy(store, name)
    adapter = source.read()
    if not isinstance(adapter, Adapter):
        raise SystemExit(f"{name} must be an adapter")
    base = load_trained_base(models, source)
    weights, policy = wrong(kind, base, adapter)
    merged = merge(weights, policy, torch.float16)
    write_model(Path(folder, f"{kind}.gguf"), merged.model, weights, name, policy.sha256, NUMBER_TYPES["float16"])


def wrong(kind: str, base: BaseModel, adapter: Adapter) -> tuple[BaseModel, Adapter]:
    match kind:
        case "zeroed":
            return base, zeroed(adapter, lambda name: True)
        case "half-scale":
            return base, replace(adapter, alpha=adapter.alpha / 2)
        case "without-alpha":
            return base, replace(adapter, alpha=float(adapter.rank))
        case "without-mlp":
            return base, zeroed(adapter, lambda name: any(part in name for part in MLP))
        case "without-q-proj":
            return base, zeroed(adapter, lambda name: "q_proj" in name)
        case "other-base":
            return other_base(base), adapter
        case _:
            raise SystemExit(f"unknown kind {kind}")


def zeroed(adapter: Adapter, is_zeroed: Callable[[str], bool]) -> Adapter:
    tensors = {
        name: torch.zeros_like(tensor) if ".lora_B." in name and is_zeroed(name) else tensor
        for name, tensor in adapter.tensors.items()
    }
    return replace(adapter, tensors=tensors)


def other_base(base: BaseModel) -> BaseModel:
    """Another fine-tuning, as it were."""
    generator = torch.Generator().manual_seed(SEED)
    made: dict[int, torch.Tensor] = {}
    for tensor in base.tensors.values():
        if tensor.ndim == 2 and tensor.data_ptr() not in made:
            noise = torch.randn(tensor.shape, generator=generator) * tensor.float().std() * NOISE
            made[tensor.data_ptr()] = (tensor + noise).to(tensor.dtype)
    return replace(base, tensors={name: made.get(each.data_ptr(), each) for name, each in base.tensors.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
