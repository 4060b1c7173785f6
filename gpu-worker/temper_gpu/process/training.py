"""The trainer: this process alone, or the first of several ranks."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

import torch

from temper_gpu.failures import TemperError
from temper_gpu.model.models import Models
from temper_gpu.store import Store
from temper_gpu.training.examples import TurnReader
from temper_gpu.training.group import GroupTrainer, RankSettings
from temper_gpu.training.trainer import Switching, Trainer


def choose_devices(count: int, first: torch.device, of_vllm: Sequence[int] = ()) -> tuple[str, ...]:
    """The devices that train, from `first` on. vLLM may share them if it shares `first`: it then makes room."""
    found = num_devices(first)
    if count > 1 and sys.platform != "linux":
        raise TemperError("BadConfig", f"--devices must be 1 on {sys.platform}, got {count}; use a host with Linux")
    if count > found and first.type == "cuda":
        raise TemperError(
            "BadConfig",
            f"--devices must be at most {found}, the number of GPUs of this host from {first} on, got {count}; pass "
            f"--devices {max(1, found)}",
        )
    if count > found:
        raise TemperError(
            "BadConfig",
            f"--devices must be at most {found}, the number of CPU cores that this process may use, got {count}: more "
            f"processes than cores wait for each other; pass --devices {found}",
        )
    if first.type == "cpu":
        return ("cpu",) * count
    numbers = range(first.index or 0, (first.index or 0) + count)
    shared = sorted(set(of_vllm) & set(numbers))
    if shared and numbers[0] not in shared:
        raise TemperError(
            "BadConfig",
            f"--vllm-devices must not name a GPU that trains, got {shared[0]} with --devices {count} from {first} on; "
            "pass GPUs of its own, or fewer --devices",
        )
    return tuple(f"cuda:{number}" for number in numbers)


def require_shardable(engine: str, first: torch.device) -> None:
    """The embedded engine holds the whole base model on the first device, which on a CPU is main memory anyway."""
    if first.type == "cuda" and engine == "embedded":
        raise TemperError(
            "BadConfig",
            "--shard-base-model must come with --engine vllm on GPUs, got the embedded engine, which holds the whole "
            f"base model on {first}; pass --engine vllm, with --vllm-devices or --vllm-url for one that exceeds a GPU",
        )


def num_devices(first: torch.device) -> int:
    if first.type == "cuda":
        return torch.cuda.device_count() - (first.index or 0)
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def open_trainer(
    models: Models,
    store: Store,
    device_lock: AbstractContextManager[object],
    sampler: Callable[[str], Mapping[str, str]],
    read_turns: TurnReader,
    settings: RankSettings,
    switching: Switching | None = None,
) -> Trainer:
    """One rank for each device. The others open models and store by the settings."""
    given = (models, store, device_lock, sampler, read_turns)
    if len(settings.devices) == 1:
        return Trainer(*given, switching=switching)
    # Imported here, because ranks import the package that imports this file.
    from temper_gpu.process.ranks import enter

    return GroupTrainer(*given, enter=enter, settings=settings, switching=switching)
