"""Loaded policies of one base model, by adapter hash."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from transformers.modeling_utils import PreTrainedModel

from temper_gpu.engine.embedded.activations import instantiate
from temper_gpu.engine.embedded.adapted import AdaptedModel
from temper_gpu.engine.interface import AdapterSource
from temper_gpu.failures import TemperError
from temper_gpu.model.full_weights import FullWeights, replaced_weights
from temper_gpu.model.lora import (
    LORA_A,
    LORA_B,
    PREFIX,
    RANK_BLOCK,
    Adapter,
    adapted_modules,
    merged_weights,
    require_in_effect,
)
from temper_gpu.model.models import BaseModel

# Policies that stay loaded regardless of memory: those of the current step and of the next one.
LEAST_POLICIES = 2
# More of them as long as all take no more than this share of what the weights take, or this little.
SHARE_OF_WEIGHTS, LITTLE = 2, 64 << 20
# A policy stays loaded for this multiple of its loading time, so that alternating policies are not loaded for each
# call; but no longer than LONGEST_KEPT_S.
KEPT_TIMES, LONGEST_KEPT_S = 10, 20.0
ROOM_POLL_S = 0.05


def is_merged(dtype: torch.dtype, device: torch.device, load_in_4bit: bool) -> bool:
    """Whether adapters become part of the weights. Below float32 they would be rounded away (model/lora.py); on a GPU,
    and beside weights of 4 bits, copying the weights is expensive, and two small products are cheap."""
    return dtype == torch.float32 and device.type == "cpu" and not load_in_4bit


def policy_bytes(shapes: Iterable[Sequence[int]], rank: int, dtype: torch.dtype, merged: bool) -> int:
    """Bytes of a policy: copies of adapted matrices if adapters are merged, else their factors in whole blocks of
    ranks."""
    if merged:
        return sum(map(math.prod, shapes)) * dtype.itemsize
    whole_rank = -(-rank // RANK_BLOCK) * RANK_BLOCK
    return sum(map(sum, shapes)) * whole_rank * dtype.itemsize


def most_bytes(weight_bytes: int) -> int:
    return max(LITTLE, weight_bytes // SHARE_OF_WEIGHTS)


class MergedModels:
    """Each policy is a separate module: own storage for the matrices that it adapts, shared storage for the rest."""

    def __init__(self, base: BaseModel) -> None:
        self._base = base
        self._models: dict[str | None, PreTrainedModel] = {None: instantiate(base)}

    def place(self, key: str, adapter: Adapter) -> None:
        model = instantiate(self._base, merged_weights(self._base, adapter))
        require_in_effect(self._base, model.get_submodule, adapter)
        self._models[key] = model

    def drop(self, key: str) -> None:
        del self._models[key]

    def for_pass(self, policy: str | None) -> PreTrainedModel:
        return self._models[policy]


class WholeModels:
    """Policies with full weights: modules that share no storage. Other policies are placed as adapters."""

    def __init__(self, base: BaseModel, adapters: "MergedModels | AdaptedModel") -> None:
        self._base = base
        self._adapters = adapters
        self._models: dict[str | None, PreTrainedModel] = {}

    def place(self, key: str, policy: Adapter | FullWeights) -> None:
        if isinstance(policy, FullWeights):
            self._models[key] = instantiate(self._base, replaced_weights(self._base, policy.tensors))
        else:
            self._adapters.place(key, policy)

    def drop(self, key: str) -> None:
        if self._models.pop(key, None) is None:
            self._adapters.drop(key)

    def for_pass(self, policy: str | None) -> PreTrainedModel:
        return self._models[policy] if policy in self._models else self._adapters.for_pass(policy)


@dataclass
class Loaded:
    num_bytes: int
    # Times of `time.monotonic`.
    since: float
    kept_until: float
    # Requests that wait or run.
    num_users: int = 0
    # Takes no new requests, because another policy waits for its room.
    is_draining: bool = False


class Policies:
    """Which policies are loaded. One in use is never dropped; of the others the least recently used goes first."""

    def __init__(
        self,
        base: BaseModel,
        max_policies: int,
        device_lock: AbstractContextManager[object],
    ) -> None:
        self._base = base
        self._device_lock = device_lock
        self._max_policies = max_policies
        self._max_bytes = most_bytes(base.num_parameters * base.dtype.itemsize)
        self._is_merged = is_merged(base.dtype, base.device, bool(base.packed))
        self._placed = WholeModels(base, MergedModels(base) if self._is_merged else AdaptedModel(base))
        self._loaded: OrderedDict[str, Loaded] = OrderedDict()
        self._changed = threading.Condition()

    def for_pass(self, policy: str | None) -> PreTrainedModel:
        """The module that computes the next pass, which is this policy's; only between `use` and `leave`."""
        return self._placed.for_pass(policy)

    def use(self, key: str | None) -> bool:
        """Keeps a loaded policy until `leave`; false if it is not loaded, or leaves."""
        with self._changed:
            if key is None:
                return True
            loaded = self._loaded.get(key)
            if loaded is None or loaded.is_draining:
                return False
            self._loaded.move_to_end(key)
            loaded.num_users += 1
            return True

    def leave(self, key: str | None) -> None:
        with self._changed:
            if key is not None:
                self._loaded[key].num_users -= 1
                self._changed.notify_all()

    def load(self, source: AdapterSource, timeout_s: float) -> None:
        """Reads a policy, makes room for it, and puts it on the device. Waits at most `timeout_s` for room, without the
        device lock, so that requests can end."""
        if source.sha256 in self.loaded():
            return  # it was about to be dropped, and was kept
        started = time.monotonic()
        policy = source.read()
        load_s = time.monotonic() - started
        num_bytes = self._bytes_of(policy)
        self._make_room(num_bytes, timeout_s)
        with self._device_lock:
            started = time.monotonic()
            self._placed.place(source.sha256, policy)
        now = time.monotonic()
        kept_s = min(LONGEST_KEPT_S, KEPT_TIMES * (load_s + now - started))
        with self._changed:
            self._loaded[source.sha256] = Loaded(num_bytes, now, now + kept_s)

    def _bytes_of(self, policy: Adapter | FullWeights) -> int:
        if isinstance(policy, FullWeights):
            return sum(tensor.numel() for tensor in policy.tensors.values()) * self._base.dtype.itemsize
        names = [PREFIX + module for module in adapted_modules(policy)]
        shapes = [(len(policy.tensors[name + LORA_B]), policy.tensors[name + LORA_A].shape[1]) for name in names]
        return policy_bytes(shapes, policy.rank, self._base.dtype, self._is_merged)

    def _make_room(self, num_bytes: int, timeout_s: float) -> None:
        """Drops policies until one more fits."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            try:
                while not self._fits(num_bytes):
                    now = time.monotonic()
                    if now > deadline:
                        raise TemperError(
                            "EngineFailed",
                            f"at most {len(self._loaded)} policies of {self._base.name} are kept loaded, and all were "
                            f"in use or just loaded for {timeout_s:g} s; retry",
                        )
                    if not self._drop_one(now):
                        self._changed.wait(ROOM_POLL_S)
            finally:
                for loaded in self._loaded.values():
                    loaded.is_draining = False

    def _fits(self, num_bytes: int) -> bool:
        count = len(self._loaded)
        taken = sum(loaded.num_bytes for loaded in self._loaded.values())
        is_small = count < self._max_policies and taken + num_bytes <= self._max_bytes
        return is_small or count < min(LEAST_POLICIES, self._max_policies)

    def _drop_one(self, now: float) -> bool:
        """If all are in use, the one that is loaded longest takes no new requests, until it is unused."""
        unused = next((key for key, loaded in self._loaded.items() if not loaded.num_users), None)
        if unused is None:
            oldest = min(self._loaded.values(), key=lambda loaded: loaded.since)
            oldest.is_draining = now >= oldest.kept_until
        elif now >= self._loaded[unused].kept_until:
            del self._loaded[unused]
            self._placed.drop(unused)
            return True
        return False

    def loaded(self) -> list[str]:
        with self._changed:
            return list(self._loaded)
