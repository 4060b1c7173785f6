"""Validated settings. The environment is read in `__main__` alone."""

from dataclasses import dataclass

from temper_gpu.contract import (
    DEFAULT_KV_CACHE_BYTES,
    DEFAULT_SLOTS,
    DEFAULT_THREADS,
    LEAST_KV_CACHE_BYTES,
    LEAST_SLOTS,
)
from temper_gpu.failures import TemperError


def require_at_least(subject: str, value: float, least: float, remedy: str) -> None:
    if value < least:
        raise TemperError("BadConfig", f"{subject} must be at least {least}, got {value}; {remedy}")


@dataclass(frozen=True)
class EmbeddedSettings:
    """Resources of one embedded engine."""

    # Sums of another number of threads may differ in their last bits: fixed for the life of a run, and recorded.
    num_threads: int = DEFAULT_THREADS
    # Requests decoded at once.
    max_slots: int = DEFAULT_SLOTS
    # Requests waiting for a slot; one more is refused.
    max_waiting: int = 8192
    # Trained policies kept loaded, if they are small (policies.py); the base model costs nothing and is always there.
    max_policies: int = 8
    kv_cache_bytes: int = DEFAULT_KV_CACHE_BYTES
    # The most of them that keys and values of prompts may take which were answered already; 0 computes every prompt
    # whole. None: a quarter.
    prefix_cache_bytes: int | None = None
    # Longest wait for a fuller prefill while requests are still arriving; a pause in arrivals ends it sooner.
    gather_s: float = 0.002
    gather_pause_s: float = 0.0004
    # Largest number of tokens in a forward pass; None: by the size of the model.
    max_pass_tokens: int | None = None

    @property
    def kept_prefix_bytes(self) -> int:
        return self.kv_cache_bytes // 4 if self.prefix_cache_bytes is None else self.prefix_cache_bytes

    def __post_init__(self) -> None:
        require_at_least("num_threads", self.num_threads, 1, "pass --threads 2")
        require_at_least("max_slots", self.max_slots, LEAST_SLOTS, "fewer would waste most of every forward pass")
        require_at_least("max_waiting", self.max_waiting, 1, "leave it at its default")
        require_at_least("max_policies", self.max_policies, 1, "at least one policy must fit")
        require_at_least("kv_cache_bytes", self.kv_cache_bytes, LEAST_KV_CACHE_BYTES, "leave it at its default")
        if not 0 <= self.kept_prefix_bytes <= self.kv_cache_bytes:
            raise TemperError(
                "BadConfig",
                f"prefix_cache_bytes must be at most kv_cache_bytes ({self.kv_cache_bytes}), got "
                f"{self.prefix_cache_bytes}; lower --prefix-cache-bytes (engine.prefixCacheBytes)",
            )
