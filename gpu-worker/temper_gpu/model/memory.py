"""Lack of memory: detection, release, and messages with figures."""

import ctypes
import gc
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

import torch

from temper_gpu.failures import TemperError

# Retries of an allocation: other programs may free memory in a moment.
TRIES = 3

# Control groups of Linux: the newer, then the older kind.
CONTAINER_BOUNDS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
# Limits in bytes.
LARGE_BLOCK = 256 << 10
# malloc.h
_M_MMAP_THRESHOLD = -3
_CPU_ALLOCATOR = ("not enough memory", "can't allocate memory", "DefaultCPUAllocator")
# Other out-of-memory errors besides PyTorch's class: CUDA raises its own while loading kernels, and so do its
# libraries.
_CUDA = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")


class Shortage:
    """Counts failures for lack of memory that no success came between: what may pass, and from the last one on not."""

    def __init__(self, subject: str, remedy: str, device: torch.device | None = None) -> None:
        """`device`: that lacks it; None: the one that this process computes on by default."""
        self._subject = subject
        self._remedy = remedy
        self._device = device
        self._tries = 0
        self._lock = threading.Lock()

    def failed(self, error: BaseException) -> TemperError:
        with self._lock:
            self._tries += 1
            tries = self._tries
        message = f"{self._subject} must fit into memory: {describe_error(error)}, {describe_memory(self._device)}"
        if tries < TRIES:
            return TemperError("EngineFailed", f"{message}; retrying ({tries} of {TRIES})")
        return TemperError("OutOfMemory", f"{message}, {tries} times in a row; {self._remedy}")

    def succeeded(self) -> None:
        with self._lock:
            self._tries = 0


def is_out_of_memory(error: BaseException | None) -> bool:
    """CUDA has a class for it, Python has one, and torch's CPU allocator raises a plain RuntimeError."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in (*_CPU_ALLOCATOR, *_CUDA))


def is_device_lost(error: BaseException) -> bool:
    """CUDA's errors stay: after one of them, nothing else computes in this process."""
    return isinstance(error, torch.AcceleratorError) and not is_out_of_memory(error)


def free_memory() -> None:
    """Returns unused memory to the system before a second try."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def give_back(device: torch.device) -> None:
    """Returns PyTorch's cached GPU memory, because others compute until the next step."""
    if device.type == "cuda":
        free_memory()


def total_bytes(device: torch.device) -> int:
    """Memory of a GPU, or of this host within its container's limit."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    known = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    bounds = [int(text) for file in CONTAINER_BOUNDS if file.is_file() and (text := file.read_text().strip()).isdigit()]
    return min([known, *bounds])


def free_bytes(device: torch.device) -> int | None:
    """Memory that is free now; None if unknown."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    known = _read_meminfo()
    return None if known is None else known["MemAvailable"]


def return_freed_memory() -> None:
    """Makes glibc return large freed blocks to the system. By default it keeps them in pieces that fit later requests
    badly: training 0.5 B parameters took 1.6 times the memory in use (measured).

    Fresh blocks cost page faults, which weigh little beside the matrices of a large model.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK)


def describe_memory(device: torch.device | None = None) -> str:
    """`1.2 GiB of 24.0 GiB are free on this host`."""
    is_gpu = device is None or device.type == "cuda"
    if is_gpu and torch.cuda.is_available() and torch.cuda.is_initialized():
        free, total = torch.cuda.mem_get_info(device)
        name = torch.cuda.get_device_name(device) + ("" if device is None else f" ({device})")
        return f"{format_bytes(free)} of {format_bytes(total)} are free on {name}"
    known = _read_meminfo()
    if known is None:
        return "on this host's CPU"
    return f"{format_bytes(known['MemAvailable'])} of {format_bytes(known['MemTotal'])} are free on this host"


def describe_error(error: BaseException) -> str:
    """Describes the error in one line: the amount requested and the device. A MemoryError says nothing."""
    first = str(error).strip().partition("\n")[0]
    text = first.split("DefaultCPUAllocator: ")[-1].partition(" Error code")[0]
    return text.rstrip(".")[:300] or type(error).__name__


def format_bytes(num_bytes: float) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if num_bytes >= size:
            return f"{num_bytes / size:,.1f} {unit}"
    return f"{num_bytes / 1024:,.1f} KiB"


def _read_meminfo() -> dict[str, int] | None:
    file = Path("/proc/meminfo")
    if not file.exists():
        return None
    lines = (line.partition(":") for line in file.read_text().splitlines())
    return {name: int(value.split()[0]) * 1024 for name, _, value in lines}
