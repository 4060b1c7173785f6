"""All vLLM engines of one process: one per base model, started on first use; outlives none of them."""

import threading
from collections.abc import Mapping

from temper_gpu.engine.vllm.engine import VllmEngine
from temper_gpu.engine.vllm.process import is_shared, require_devices
from temper_gpu.engine.vllm.settings import VllmSettings, recorded
from temper_gpu.engine.vllm.training import StepNeeds, Training
from temper_gpu.model.models import ModelLibrary


class VllmHost:
    def __init__(self, library: ModelLibrary, settings: VllmSettings, needs: StepNeeds | None = None) -> None:
        """`needs`: what steps take of the trainer's GPU; None: vLLM releases all that it can."""
        if settings.external is None:
            require_devices(settings, library.device)
        self._library = library
        self._settings = settings
        self._engines: dict[str, VllmEngine] = {}
        self._opening = threading.Lock()
        # Lock of the trainer while it computes: engines on its GPU make room.
        self.training = Training(self.shared, library.device, needs)

    def engine(self, base_model: str) -> VllmEngine:
        # Looked up without the lock, because opening another model holds it.
        started = self.started()
        if base_model in started:
            return started[base_model]
        with self._opening:
            if base_model not in self.started():
                base = self._library.get(base_model)
                self._engines[base_model] = VllmEngine(base, base.folder or base_model, self._settings)
            return self._engines[base_model]

    def started(self) -> Mapping[str, VllmEngine]:
        """Leaves out failed external servers: they may have been repaired, so the next request checks them again."""
        engines = dict(self._engines)
        if self._settings.external is None:
            return engines
        return {name: engine for name, engine in engines.items() if engine.health().failure is None}

    def names(self) -> list[str]:
        return self._library.names()

    def has(self, base_model: str) -> bool:
        return self._library.has(base_model)

    def pin(self, base_model: str) -> str:
        return self._library.pin(base_model)

    def recorded(self, base_model: str) -> Mapping[str, str]:
        """Engine fields for manifests. They are requested from an external server."""
        if self._settings.external is not None:
            return self.engine(base_model).recorded
        return recorded(self._library.get(base_model), self._settings)

    def close(self) -> None:
        for engine in list(self._engines.values()):
            engine.close()

    def shared(self) -> Mapping[str, VllmEngine]:
        """Engines on the trainer's GPU."""
        if self._settings.external is not None or not is_shared(self._library.device, self._settings):
            return {}
        return self.started()
