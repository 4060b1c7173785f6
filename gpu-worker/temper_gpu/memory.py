"""Memory that does not suffice: recognised, given back, and told in figures."""

import gc
from pathlib import Path

import torch

_CPU_ALLOCATOR = ("not enough memory", "can't allocate memory", "DefaultCPUAllocator")


def is_out_of_memory(error: BaseException | None) -> bool:
    """CUDA has a class for it, Python has one, and torch's CPU allocator raises a plain RuntimeError."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _CPU_ALLOCATOR)


def free_memory() -> None:
    """What nobody holds any more, back to the system: for a second try."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def describe_memory(device: torch.device) -> str:
    """`1.2 GiB of 24.0 GiB free on cpu`."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return f"{format_bytes(free)} of {format_bytes(total)} free on {device}"
    known = _read_meminfo()
    if known is None:
        return f"on {device}"
    return f"{format_bytes(known['MemAvailable'])} of {format_bytes(known['MemTotal'])} free on {device}"


def describe_error(error: BaseException) -> str:
    """The first line says how much was asked for; a MemoryError says nothing."""
    first = str(error).strip().partition("\n")[0]
    text = first.split("DefaultCPUAllocator: ")[-1].partition(" Error code")[0]
    return text.rstrip(".") or type(error).__name__


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
