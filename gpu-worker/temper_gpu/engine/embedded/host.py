"""All embedded engines of one process: one per base model, started on first use. The longest idle one makes room."""

import logging
import os
import threading
import time
from collections.abc import Callable

from temper_gpu.engine.embedded.device_lock import DeviceLock
from temper_gpu.engine.embedded.engine import ROOM_REMEDY, EmbeddedEngine
from temper_gpu.engine.embedded.proof import Unproven
from temper_gpu.engine.embedded.settings import EmbeddedSettings
from temper_gpu.model.memory import Shortage, free_memory, is_out_of_memory
from temper_gpu.model.models import BaseModel, ModelLibrary

EXIT_CODE = 70
# Base models that stay loaded at once: each has its weights and its key-value cache.
MOST_MODELS = 4

log = logging.getLogger(__name__)


def exit_process(error: BaseException) -> None:
    """A worker without an engine would take work and never do it; the supervisor starts a new one."""
    log.critical("what computes died, the process exits", exc_info=error)
    logging.shutdown()
    os._exit(EXIT_CODE)


class EngineHost:
    def __init__(
        self,
        library: ModelLibrary,
        settings: EmbeddedSettings,
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
        # The base model whose policy the trainer holds.
        self.trained: Callable[[], str | None] = lambda: None

    def engine(self, base_model: str) -> EmbeddedEngine:
        # Looked up without the lock, because opening another model holds it.
        engine = self._engines.get(base_model)
        if engine is None:
            with self._opening:
                engine = self._engines.get(base_model) or self._open(base_model)
        engine.used_at = time.monotonic()
        return engine

    def _open(self, base_model: str) -> EmbeddedEngine:
        while len(self._engines) >= MOST_MODELS and self.close_idle():
            pass
        self._engines[base_model] = self._start(base_model)
        return self._engines[base_model]

    def close_idle(self) -> bool:
        """Closes the least recently used engine, with its model, of those without requests whose model is not in
        training. False: there is none."""
        trained = self.trained()
        idle = [name for name, engine in self.started().items() if name != trained and engine.is_idle]
        if not idle:
            return False
        name = min(idle, key=lambda name: self._engines[name].used_at)
        # Callers that have just found it get an error to retry.
        self._engines.pop(name).close()
        self._library.forget(name)
        free_memory()
        log.info("model closed", extra={"model": name, "reason": "another one needs its memory"})
        return True

    def _start(self, base_model: str) -> EmbeddedEngine:
        lacking = Shortage(f"the model {base_model}", ROOM_REMEDY, self._library.device)
        shortage = self._shortages.setdefault(base_model, lacking)
        while True:
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
            if not self.close_idle():
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

    def recorded(self, base_model: str) -> dict[str, str]:
        """Engine fields for manifests: present if answers may depend on other requests."""
        return {} if self.engine(base_model).sizes.is_proven else {"invariance": "none"}

    def started(self) -> dict[str, EmbeddedEngine]:
        return dict(self._engines)

    def names(self) -> list[str]:
        return self._library.names()

    def pin(self, base_model: str) -> str:
        return self._library.pin(base_model)

    def has(self, base_model: str) -> bool:
        return self._library.has(base_model)

    def close(self) -> None:
        for engine in self.started().values():
            engine.close()
