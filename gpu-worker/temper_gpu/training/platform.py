"""What the bytes of a step depend on beside its inputs, and the settings that make them repeatable."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

from temper_gpu.commits.checkpoints import COMPILED, DEFAULT_DTYPE, QUANTIZED
from temper_gpu.model.instructions import limits
from temper_gpu.model.lora import dtype_name
from temper_gpu.model.models import BaseModel

# cuBLAS is deterministic only with a workspace of fixed size; read when CUDA starts.
_CUBLAS_WORKSPACE = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
# On Intel's processors MKL adds in an order that depends on a row's place in a matrix (on AVX2 in nearly every shape,
# on AVX-512 with several threads in some), unless it is told to be strict. Read at its first call. AMD's keep the
# kernels that they had: the order was not seen to depend on places there.
_STRICT_MKL = ("MKL_CBWR", "AUTO,STRICT")
_INTEL = "GenuineIntel"
# Raised whenever the trainer computes in another order of operations. Steps without it are of the first one. On a GPU
# the third one: a frozen output head is differentiated forward there (head_scores.py).
_TRAINER = {"cpu": 2, "cuda": 3}
# Of make_deterministic: the engine computes with as many as suit it.
_threads: int | None = None


def make_deterministic(threads: int) -> None:
    """Once per process, before any tensor work: the order of additions depends on the number of threads."""
    global _threads
    os.environ.setdefault(*_CUBLAS_WORKSPACE)
    fix_kernels()
    fix_gpu_sums()
    _threads = threads
    fix_threads()
    torch.use_deterministic_algorithms(True)
    # Filling fresh memory finds reads of it, which we have none of, and costs a pass over every new tensor.
    torch.utils.deterministic.fill_uninitialized_memory = False  # pyright: ignore[reportAttributeAccessIssue]  (made by a metaclass)


def fix_kernels() -> None:
    """Before MKL's first call: kernels whose numbers do not depend on a row's place."""
    if _cpu_field("vendor_id") == _INTEL:
        os.environ.setdefault(*_STRICT_MKL)


def fix_gpu_sums() -> None:
    """cuBLAS may cut a sum into parts and round each of them to bfloat16, more or fewer by the product's shape: engine
    and trainer, whose shapes differ, would be further apart."""
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """Around what a step computes; nothing else computes meanwhile."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        between_steps(device)


def between_steps(device: torch.device) -> None:
    """On a GPU, PyTorch's deterministic kernels are the trainer's alone: storing a few keys and values with them copies
    the engine's whole table."""
    if device.type == "cuda":
        torch.use_deterministic_algorithms(False)


def fix_threads() -> None:
    """Where a thread begins to compute: OpenMP counts its helpers per calling thread, and a new one begins with as many
    as any other set last."""
    torch.set_num_threads(_num_threads())


def _num_threads() -> int:
    return _threads or torch.get_num_threads()


def platform_fingerprint(device: torch.device, dtype: torch.dtype) -> dict[str, str | int]:
    """On another platform the same inputs give the same numbers up to rounding only."""
    gpu = {"gpu": torch.cuda.get_device_name(device)} if device.type == "cuda" else {}
    name = dtype_name(dtype)
    return {
        **_libraries(),
        **gpu,
        **({} if name == DEFAULT_DTYPE else {"dtype": name}),
        **({"instructions": found} if (found := limits()) else {}),
        "cpu": _cpu_field("model name") or platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "threads": _num_threads(),
        "trainer": _TRAINER[device.type],
    }


def base_fingerprint(base: BaseModel) -> dict[str, str | int]:
    """Whole weights have no name: manifests of them are as ever."""
    return {"quantization": QUANTIZED} if base.packed else {}


def ranks_fingerprint(num_ranks: int) -> dict[str, str | int]:
    """Of a step: what is added up first depends on them. One has no name: manifests of one device are as ever."""
    return {"devices": num_ranks} if num_ranks > 1 else {}


def layers_fingerprint(are_compiled: bool) -> dict[str, str | int]:
    """Of a step. Layers as they are have no name."""
    return {"layers": COMPILED} if are_compiled else {}


@cache
def _libraries() -> dict[str, str]:
    return {name: version(name) for name in ("torch", "transformers", "peft")}


@cache
def _cpu_field(field: str) -> str:
    """Of the first processor, as Linux describes it; empty elsewhere."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")
