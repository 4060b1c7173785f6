"""Memory that a vLLM on the trainer's GPU releases during a step: nothing, its key-value cache, or all.

The release is planned in bytes before the first step of a base model. Releasing nothing takes no time; the cache is
allocated again empty; weights are copied to main memory and back.
"""

from dataclasses import dataclass
from typing import Literal

from temper_gpu.model.memory import format_bytes

# `cache`: keys and values. `all`: weights, too (vLLM's sleep, level 1).
Release = Literal["nothing", "cache", "all"]
# The next one releases more.
RELEASES: tuple[Release, ...] = ("nothing", "cache", "all")
# Share of the free memory that a step may be planned to take, because of fragmentation.
MOST_OF_FREE = 0.9


@dataclass(frozen=True)
class StepNeed:
    """Additional bytes of a step, beside what is always allocated."""

    # Bytes with all activations kept for the backward pass.
    kept: int
    # Bytes with recomputed layers.
    recomputed: int
    # The trainer keeps layers where so much is free.
    free_to_keep: int


@dataclass(frozen=True)
class Held:
    """Bytes that vLLM holds on the trainer's GPU."""

    cache: int
    weights: int


@dataclass(frozen=True)
class ReleasePlan:
    release: Release
    reason: str


def plan_release(free: int, held: Held, need: StepNeed) -> ReleasePlan:
    """The smallest release with which a step runs like beside a sleeping vLLM: layers are kept if they could be then.
    `free`: bytes with all of vLLM in memory."""
    keeps = free + held.cache + held.weights >= need.free_to_keep
    needed = need.kept if keeps else need.recomputed
    wanted = max(int(needed / MOST_OF_FREE), need.free_to_keep if keeps else 0)
    step = f"a step wants {format_bytes(wanted)} of free memory"
    if wanted <= free:
        return ReleasePlan("nothing", f"{step}, and {format_bytes(free)} are free beside vLLM")
    beside = f"{format_bytes(free)} are free beside vLLM, its key-value cache has {format_bytes(held.cache)}"
    if wanted <= free + held.cache:
        return ReleasePlan("cache", f"{step}; {beside}")
    return ReleasePlan("all", f"{step}; {beside}, its weights {format_bytes(held.weights)}")


def larger(one: Release, other: Release) -> Release:
    return RELEASES[max(RELEASES.index(one), RELEASES.index(other))]


def more(release: Release) -> Release | None:
    """The next one that leaves the trainer more memory."""
    later = RELEASES[RELEASES.index(release) + 1 :]
    return later[0] if later else None
