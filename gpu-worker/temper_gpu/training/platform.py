"""The fingerprint of everything besides its inputs that a step's bytes depend on, and the settings for repeatable
steps."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path

import torch

from temper_gpu.commits.checkpoints import DEFAULT_DTYPE, QUANTIZED
from temper_gpu.model.instructions import limits
from temper_gpu.model.lora import dtype_name
from temper_gpu.model.models import BaseModel

# cuBLAS is deterministic only with a workspace of fixed size; read when CUDA starts.
_CUBLAS_WORKSPACE = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
# MKL on Intel adds in an order that depends on a row's place in a matrix (on AVX2 in nearly every shape, on AVX-512
# with several threads in some), unless it is set to strict. It reads this at its first call. On AMD no such dependence
# was seen, and the kernels stay the same.
_STRICT_MKL = ("MKL_CBWR", "AUTO,STRICT")
_INTEL = "GenuineIntel"
# Version of the trainer's order of operations, raised with every change. Steps without it have the first one. A GPU is
# one ahead, because a frozen output head is differentiated forward there (head_scores.py).
_TRAINER = {"cpu": 4, "cuda": 5}
# Threads of make_deterministic; the engine may set others.
_threads: int | None = None


def make_deterministic(threads: int) -> None:
    """Runs once per process, before any tensor work: the order of additions depends on the number of threads."""
    global _threads
    os.environ.setdefault(*_CUBLAS_WORKSPACE)
    fix_kernels()
    fix_gpu_sums()
    _threads = threads
    fix_threads()
    torch.use_deterministic_algorithms(True)
    # Filling fresh memory would only reveal uninitialised reads, and costs a pass over every new tensor.
    # pyrefly: ignore[missing-attribute]
    torch.utils.deterministic.fill_uninitialized_memory = False


def fix_kernels() -> None:
    """Selects kernels that are independent of a row's place. Runs before MKL's first call."""
    if _cpu_field("vendor_id") == _INTEL:
        os.environ.setdefault(*_STRICT_MKL)


def fix_gpu_sums() -> None:
    """Keeps cuBLAS from splitting sums into parts rounded to bfloat16. The parts depend on a product's shape, so engine
    and trainer would differ more."""
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """Makes the computations inside deterministic. Nothing else may compute meanwhile."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        between_steps(device)


def between_steps(device: torch.device) -> None:
    """Restores the engine's kernels: with PyTorch's deterministic ones, storing a few keys and values copies its whole
    table."""
    if device.type == "cuda":
        torch.use_deterministic_algorithms(False)


def fix_threads() -> None:
    """Runs in each thread that computes: OpenMP counts its helpers per calling thread, and a new one starts with the
    number that any other set last."""
    torch.set_num_threads(_num_threads())


def _num_threads() -> int:
    return _threads or torch.get_num_threads()


def platform_fingerprint(device: torch.device, dtype: torch.dtype) -> dict[str, str | int]:
    """Identifies the platform. On another one the same inputs give the same numbers only up to rounding."""
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
    """Identifies how the base model is loaded; empty for whole weights."""
    return {"quantization": QUANTIZED} if base.packed else {}


def ranks_fingerprint(num_ranks: int) -> dict[str, str | int]:
    """Identifies the number of ranks, because sums depend on it; empty for one rank."""
    return {"devices": num_ranks} if num_ranks > 1 else {}


@cache
def _libraries() -> dict[str, str]:
    return {name: version(name) for name in ("torch", "transformers")}


@cache
def _cpu_field(field: str) -> str:
    """A field of the first processor in Linux's /proc/cpuinfo; empty elsewhere."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")
