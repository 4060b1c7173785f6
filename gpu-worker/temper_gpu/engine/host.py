"""All engines of one worker: finds policies by name, keeps one engine per base model, outlives none of them."""

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from temper_gpu.checkpoints import PolicyResolver, ResolvedPolicy
from temper_gpu.engine.device_lock import DeviceLock
from temper_gpu.engine.engine import ROOM_REMEDY, Engine
from temper_gpu.engine.policies import LoadAdapter
from temper_gpu.engine.proof import Unproven
from temper_gpu.engine.requests import NotFound
from temper_gpu.failures import TemperError
from temper_gpu.memory import Shortage, free_memory, is_out_of_memory
from temper_gpu.models import BaseModel, ModelLibrary
from temper_gpu.settings import EngineSettings

EXIT_CODE = 70


@dataclass(frozen=True)
class Target:
    """What a name stands for: the engine, and the policy to run on it."""

    engine: Engine
    policy_sha256: str | None
    load: LoadAdapter


def exit_process(error: BaseException) -> None:
    """A worker without an engine would take work and never do it; the supervisor starts a new one."""
    logging.getLogger(__name__).critical("engine died, the process exits", exc_info=error)
    logging.shutdown()
    os._exit(EXIT_CODE)


class EngineHost:
    def __init__(
        self,
        library: ModelLibrary,
        resolver: PolicyResolver,
        settings: EngineSettings,
        device_lock: "DeviceLock | threading.Lock | None" = None,
        on_death: Callable[[BaseException], None] = exit_process,
        on_doubt: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`on_doubt`: a model's forward passes have no size that is proven, or few. It may start the process again."""
        self._library = library
        self._resolver = resolver
        self._settings = settings
        self._device_lock = device_lock or DeviceLock()
        self._on_death = on_death
        self._on_doubt = on_doubt
        self._engines: dict[str, Engine] = {}
        self._opening = threading.Lock()
        self._shortages: dict[str, Shortage] = {}

    def find(self, name: str) -> Target | None:
        """Where a name leads, or None if store or base model have to be asked first: not for an event loop."""
        policy = self._resolver.recall(name)
        if policy is None:
            return None
        self._require_known(name, policy)
        engine = self._engines.get(policy.base_model)
        return None if engine is None else Target(engine, policy.adapter_sha256, policy.load)

    def open(self, name: str) -> Target:
        """As `find`, asking the store, loading the base model and starting its engine if need be."""
        try:
            policy = self._resolver.resolve(name)
        except TemperError as error:
            raise (NotFound(error.message) if error.type == "BadConfig" else error) from error
        self._require_known(name, policy)
        # Looked up without the lock, which is held for as long as another model is being opened.
        engine = self._engines.get(policy.base_model) or self.engine(policy.base_model)
        return Target(engine, policy.adapter_sha256, policy.load)

    def engine(self, base_model: str) -> Engine:
        """The engine of a base model, started on first use."""
        with self._opening:
            if base_model not in self._engines:
                self._engines[base_model] = self._start(base_model)
            return self._engines[base_model]

    def _start(self, base_model: str) -> Engine:
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

    def _prove(self, base: BaseModel) -> Engine:
        try:
            engine = Engine(base, self._settings, self._device_lock, self._on_death)
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

    def engines(self) -> dict[str, Engine]:
        return dict(self._engines)

    def base_models(self) -> list[str]:
        return self._library.names()

    @property
    def failure(self) -> BaseException | None:
        return next((engine.failure for engine in self.engines().values() if engine.failure), None)

    def close(self) -> None:
        for engine in self.engines().values():
            engine.close()

    def _require_known(self, name: str, policy: ResolvedPolicy) -> None:
        if policy.adapter_sha256 is None and policy.base_model not in self._library.names():
            known = ", ".join(self._library.names())
            raise NotFound(f"model must be one of {known} or a policy run@step, got {name!r}; add it to models.json")
