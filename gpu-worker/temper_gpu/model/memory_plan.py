"""A model's device memory, estimated from its config.json before any weights are read.

A plan is a list of parts, each with its numbers. Parts of engine and trainer are computed beside their code
(engine/*/needs.py, training/needs.py); the weights and the comparison with a device are here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.failures import TemperError
from temper_gpu.model.lora import dtype_name
from temper_gpu.model.memory import format_bytes

# `always`: as long as the model is open. `serving` and `training` never happen at once on one device.
Phase = Literal["always", "serving", "training"]
# CUDA's context, the workspaces of its libraries, and what its allocator cannot join together. An estimate: not tried.
CUDA_BYTES = 3 << 29
# Python, PyTorch and the other imports, in main memory (measured: 740 MiB).
PROCESS_BYTES = 3 << 28
# bitsandbytes and the compiler that it imports, in main memory (measured: 186 MiB).
BITS_BYTES = 3 << 26


@dataclass(frozen=True)
class Part:
    phase: Phase
    name: str
    num_bytes: int
    # Factors of the number.
    reason: str


@dataclass(frozen=True)
class MemoryPlan:
    parts: tuple[Part, ...]
    # Whether a backward pass computes layers again.
    recomputes: bool = False

    def of(self, phase: Phase) -> int:
        return sum(part.num_bytes for part in self.parts if part.phase == phase)

    @property
    def num_bytes(self) -> int:
        """Peak of all phases."""
        return self.of("always") + max(self.of("serving"), self.of("training"))


def count_parameters(model: PreTrainedModel) -> int:
    """Counts tied weights once."""
    return sum(parameter.numel() for parameter in model.parameters())


def weights_part(model: PreTrainedModel, dtype: torch.dtype, phase: Phase = "always", whose: str = "") -> Part:
    num_parameters = count_parameters(model)
    reason = f"{num_parameters:,} parameters × {dtype.itemsize} bytes ({dtype_name(dtype)})"
    return Part(phase, f"weights{whose}", num_parameters * dtype.itemsize, reason)


def process_part(device: torch.device) -> Part:
    if device.type == "cpu":
        return Part("always", "process", PROCESS_BYTES, "Python, PyTorch and the other imports")
    return Part("always", "CUDA", CUDA_BYTES, "context, workspaces of libraries, fragmentation (an estimate)")


def bits_parts(device: torch.device, is_needed: bool) -> list[Part]:
    """Main memory of bitsandbytes, which packs weights or moments."""
    reason = "its import, and PyTorch's compiler"
    return [Part("always", "bitsandbytes", BITS_BYTES, reason)] if is_needed and device.type == "cpu" else []


def require_room(name: str, parts: Iterable[Part], total: int, remedy: str) -> None:
    """Refuses what no moment's free memory would help: it exceeds all that the device has."""
    plan = MemoryPlan(tuple(parts))
    if plan.num_bytes <= total:
        return
    figures = ", ".join(
        f"{part.name} {format_bytes(part.num_bytes)}"
        for part in sorted(plan.parts, key=lambda part: -part.num_bytes)
        if part.num_bytes >= plan.num_bytes // 100
    )
    raise TemperError(
        "BadConfig",
        f"model {name} must fit into the {format_bytes(total)} of its device, but needs "
        f"{format_bytes(plan.num_bytes)} ({figures}); {remedy}",
    )
