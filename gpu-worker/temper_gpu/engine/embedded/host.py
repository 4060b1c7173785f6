"""All embedded engines of one process: one per base model, started on first use; outlives none of them."""

import logging
import os
import threading
from collections.abc import Callable

from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.engine import ROOM_REMEDY, EmbeddedEngine
from temper_gpu.engine.embedded.proof import Unproven
from temper_gpu.engine.embedded.settings import EngineSettings
from temper_gpu.model.memory import Shortage, free_memory, is_out_of_memory
from temper_gpu.model.models import BaseModel, ModelLibrary

EXIT_CODE = 70

log = logging.getLogger(__name__)


def exit_process(error: BaseException) -> None:
    """A worker without an engine would take work and never do it; the supervisor starts a new one."""
    log.critical("engine died, the process exits", exc_info=error)
    logging.shutdown()
    os._exit(EXIT_CODE)


class EngineHost:
    def __init__(
        self,
        library: ModelLibrary,
        settings: EngineSettings,
        device_lock: "DeviceLock | threading.Lock | None" = None,
        on_death: Callable[[BaseException], None] = exit_process,
        on_doubt: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`on_doubt`: a model's forward passes have no size that is proven, or few. It may start the process again."""
        self._library = library
        self._settings = settings
        self._device_lock = device_lock or DeviceLock()
        self._on_death = on_death
        self._on_doubt = on_doubt
        self._engines: dict[str, EmbeddedEngine] = {}
        self._opening = threading.Lock()
        self._shortages: dict[str, Shortage] = {}

    def engine(self, base_model: str) -> EmbeddedEngine:
        # Looked up without the lock, which is held for as long as another model is being opened.
        if base_model in self._engines:
            return self._engines[base_model]
        with self._opening:
            if base_model not in self._engines:
                self._engines[base_model] = self._start(base_model)
            return self._engines[base_model]

    def _start(self, base_model: str) -> EmbeddedEngine:
        shortage = self._shortages.setdefault(base_model, Shortage(f"the model {base_model}", ROOM_REMEDY))
        try:
            base = self._library.get(base_model)
            engine = self._prove(base)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            failure = shortage.failed(error)
        else:
            shortage.succeeded()
            return engine
        free_memory()
        raise failure

    def _prove(self, base: BaseModel) -> EmbeddedEngine:
        try:
            engine = EmbeddedEngine(base, self._settings, self._device_lock, self._on_death)
        except Unproven as error:
            if base.device.type == "cpu":
                self._on_doubt(error.message)
            raise
        proven, num_candidates = engine.sizes.allowed, len(engine.candidates.allowed)
        if base.device.type == "cpu" and 2 * len(proven) < num_candidates:
            sizes = ", ".join(map(str, proven))
            self._on_doubt(
                f"of {num_candidates} sizes of a forward pass of {base.name} only {sizes} give the same bits"
            )
        return engine

    def started(self) -> dict[str, EmbeddedEngine]:
        return dict(self._engines)

    def names(self) -> list[str]:
        return self._library.names()

    def settle(self, base_model: str) -> str:
        return self._library.settle(base_model)

    def has(self, base_model: str) -> bool:
        return self._library.has(base_model)

    def close(self) -> None:
        for engine in self.started().values():
            engine.close()
