"""The embedded engine: batch-invariant continuous batching of one base model and the policies made from it."""

from temper_gpu.engine.device_lock import DeviceLock
from temper_gpu.engine.engine import Engine
from temper_gpu.engine.host import EngineHost, Target
from temper_gpu.engine.requests import (
    ContextTooLong,
    DeadlinePassed,
    Generation,
    GenerationRequest,
    NotFound,
    QueueFull,
)
from temper_gpu.settings import EngineSettings

__all__ = [
    "ContextTooLong",
    "DeadlinePassed",
    "DeviceLock",
    "Engine",
    "EngineHost",
    "EngineSettings",
    "Generation",
    "GenerationRequest",
    "NotFound",
    "QueueFull",
    "Target",
]
