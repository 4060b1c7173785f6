"""The target of a request's model name: an engine, and an adapter of its base model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from temper_gpu.commits.checkpoints import Manifest
from temper_gpu.commits.resolver import PolicyResolver, ResolvedPolicy
from temper_gpu.commits.same_base import require_same_base
from temper_gpu.engine.interface import AdapterSource, Engine, Engines
from temper_gpu.failures import TemperError

if TYPE_CHECKING:
    from temper_gpu.model.models import Models


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


@dataclass(frozen=True)
class _TrainedOn:
    """All that a comparison of base models reads of a manifest."""

    base_model: str
    sha256: str
    dtype: str
    is_packed: bool


class Targets:
    def __init__(self, resolver: PolicyResolver, engines: Engines, models: "Models | None") -> None:
        """`models`: a policy must have been trained on what they hold; None: it is served on any base model."""
        self._resolver = resolver
        self._engines = engines
        self._models = models
        # Found to be what `models` hold: hashing them is done once.
        self._compared: set[_TrainedOn] = set()

    def find(self, name: str) -> Target | None:
        """The target of a name, or None if store or engine must answer first, which is too slow for an event loop."""
        policy = self._resolver.recall(name)
        if policy is None:
            return None
        self._require_known(name, policy)
        engine = self._engines.started().get(policy.base_model)
        if engine is None or not self._is_compared(policy.manifest):
            return None
        return Target(engine, policy.adapter)

    def open(self, name: str) -> Target:
        """Like `find`, but asks the store and starts the base model's engine if necessary."""
        try:
            policy = self._resolver.resolve(name)
        except TemperError as error:
            if error.type != "BadConfig":
                raise
            raise NotFound(error.message) from error
        self._require_known(name, policy)
        engine = self._engines.engine(policy.base_model)
        self._require_same_base(name, policy.manifest)
        return Target(engine, policy.adapter)

    def _require_known(self, name: str, policy: ResolvedPolicy) -> None:
        if policy.adapter is None and not self._engines.has(policy.base_model):
            known = ", ".join(self._engines.names())
            raise NotFound(f"model must be one of {known} or a policy run@step, got {name!r}; add it to models.json")

    def _is_compared(self, manifest: Manifest | None) -> bool:
        return manifest is None or self._models is None or _trained_on(manifest) in self._compared

    def _require_same_base(self, name: str, manifest: Manifest | None) -> None:
        if manifest is None or self._models is None or self._is_compared(manifest):
            return
        require_same_base(name, manifest, self._models.get(manifest.base_model))
        self._compared.add(_trained_on(manifest))


def _trained_on(manifest: Manifest) -> _TrainedOn:
    return _TrainedOn(manifest.base_model, manifest.base_model_sha256, manifest.dtype, manifest.is_packed)
