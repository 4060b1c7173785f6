"""What the name in a request stands for: an engine, and the adapter to put on its base model."""

from dataclasses import dataclass

from temper_gpu.commits.resolver import PolicyResolver, ResolvedPolicy
from temper_gpu.engine.interface import AdapterSource, Engine, Engines
from temper_gpu.failures import TemperError


class NotFound(TemperError):
    """No model and no policy of this name."""

    def __init__(self, message: str) -> None:
        super().__init__("BadConfig", message)


@dataclass(frozen=True)
class Target:
    engine: Engine
    adapter: AdapterSource | None

    @property
    def adapter_sha256(self) -> str | None:
        return None if self.adapter is None else self.adapter.sha256


class Targets:
    def __init__(self, resolver: PolicyResolver, engines: Engines) -> None:
        self._resolver = resolver
        self._engines = engines

    def find(self, name: str) -> Target | None:
        """Where a name leads, or None if store or engine have to be asked first: not for an event loop."""
        policy = self._resolver.recall(name)
        if policy is None:
            return None
        self._require_known(name, policy)
        engine = self._engines.started().get(policy.base_model)
        return None if engine is None else Target(engine, policy.adapter)

    def open(self, name: str) -> Target:
        """As `find`, asking the store and starting the base model's engine if need be."""
        try:
            policy = self._resolver.resolve(name)
        except TemperError as error:
            if error.type != "BadConfig":
                raise
            raise NotFound(error.message) from error
        self._require_known(name, policy)
        return Target(self._engines.engine(policy.base_model), policy.adapter)

    def _require_known(self, name: str, policy: ResolvedPolicy) -> None:
        if policy.adapter is None and not self._engines.has(policy.base_model):
            known = ", ".join(self._engines.names())
            raise NotFound(f"model must be one of {known} or a policy run@step, got {name!r}; add it to models.json")
