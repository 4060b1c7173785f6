"""Loaded policies of one base model, by adapter hash, least recently used out first."""

import threading
from collections import OrderedDict
from contextlib import AbstractContextManager
from dataclasses import fields

import torch
from torch import Tensor
from transformers import PreTrainedModel

from temper_gpu.engine.embedded.activations import instantiate
from temper_gpu.engine.interface import AdapterSource
from temper_gpu.failures import TemperError
from temper_gpu.model.lora import (
    RANK_BLOCK,
    Adapter,
    attach,
    initial_tensors,
    merged_weights,
    require_in_effect,
    target_modules,
)
from temper_gpu.model.models import BaseModel


class AdaptedBase(BaseModel):
    """The base model with an adapter on every layer that may have one: for the proof at start."""

    @classmethod
    def of(cls, base: BaseModel) -> "AdaptedBase":
        return cls(**{field.name: getattr(base, field.name) for field in fields(base)})

    def instantiate(self, attention: str, overrides: dict[str, Tensor] | None = None) -> PreTrainedModel:
        model = super().instantiate(attention, overrides)
        tensors = initial_tensors(model, target_modules(model, None), RANK_BLOCK, 0)
        # What is multiplied by zero hides what it was multiplied with.
        random = {name: tensor if tensor.any() else torch.full_like(tensor, 0.01) for name, tensor in tensors.items()}
        return attach(model, Adapter("", random, RANK_BLOCK, RANK_BLOCK))


def is_merged(dtype: torch.dtype) -> bool:
    """Whether adapters become part of the weights; below float32 they would be rounded away (model/lora.py)."""
    return dtype == torch.float32


class Policies:
    """Each policy is a module of its own: own storage for what its adapter is made of, shared storage for the rest."""

    def __init__(self, base: BaseModel, max_policies: int, device_lock: AbstractContextManager[object]) -> None:
        self._base = base
        self._device_lock = device_lock
        self._max_policies = max_policies
        self._models: OrderedDict[str | None, PreTrainedModel] = OrderedDict({None: instantiate(base)})
        self._num_users: dict[str | None, int] = {}
        self._changed = threading.Condition()

    def model(self, key: str | None) -> PreTrainedModel:
        """A loaded policy's module; only between `use` and `leave`."""
        return self._models[key]

    def use(self, key: str | None) -> bool:
        """Keeps a loaded policy until `leave`; false if it is not loaded."""
        with self._changed:
            if key not in self._models:
                return False
            self._models.move_to_end(key)
            self._num_users[key] = self._num_users.get(key, 0) + 1
            return True

    def leave(self, key: str | None) -> None:
        with self._changed:
            self._num_users[key] -= 1
            self._changed.notify_all()

    def load(self, source: AdapterSource, timeout_s: float) -> None:
        """Reads a policy, makes room for it, puts it on the device, and keeps it.

        A policy in use is never dropped: waits for room, but not for ever. The device is not held meanwhile, or nobody
        who uses a policy could come to an end.
        """
        adapter = source.read()
        with self._changed:
            if not self._changed.wait_for(self._make_room, timeout_s):
                raise TemperError(
                    "EngineFailed",
                    f"at most {self._max_policies} policies of {self._base.name} are kept loaded, and all were in use "
                    f"for {timeout_s:g} s; retry",
                )
        with self._device_lock:
            model = self._place(adapter)
        with self._changed:
            self._models[source.sha256] = model

    def _place(self, adapter: Adapter) -> PreTrainedModel:
        if is_merged(self._base.dtype):
            model = instantiate(self._base, merged_weights(self._base, adapter))
        else:
            model = attach(instantiate(self._base), adapter)
        require_in_effect(self._base, model, adapter)
        return model

    def _make_room(self) -> bool:
        """Drops unused policies until one more fits."""
        trained = [key for key in self._models if key is not None]
        for key in trained:
            if len(trained) < self._max_policies:
                break
            if not self._num_users.get(key):
                del self._models[key]
                trained = [other for other in trained if other != key]
        return len(trained) < self._max_policies

    def loaded(self) -> list[str]:
        with self._changed:
            return [key for key in self._models if key is not None]
