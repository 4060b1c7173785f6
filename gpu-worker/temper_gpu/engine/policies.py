"""Loaded policies of one base model: merged weights by adapter hash, least recently used out first."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from transformers import PreTrainedModel

from temper_gpu.engine.attention import ATTENTION
from temper_gpu.lora import Adapter, merged_weights
from temper_gpu.models import BaseModel

LoadAdapter = Callable[[], Adapter | None]


class Policies:
    """Each policy is a module of its own: own storage for merged matrices, shared storage for the rest."""

    def __init__(self, base: BaseModel, max_policies: int) -> None:
        self._base = base
        self._max_policies = max_policies
        self._models: OrderedDict[str | None, PreTrainedModel] = OrderedDict({None: base.instantiate(ATTENTION)})
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

    def load(self, key: str, load: LoadAdapter, timeout_s: float) -> None:
        """Reads, merges and keeps a policy. A policy in use is never dropped: waits for room, but not for ever."""
        adapter = load()
        overrides = None if adapter is None else merged_weights(self._base, adapter)
        model = self._base.instantiate(ATTENTION, overrides)
        with self._changed:
            self._changed.wait_for(self._make_room, timeout_s)
            self._models[key] = model

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
