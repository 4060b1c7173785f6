"""Models and policies that are open: opened on demand, while requests for them wait a moment."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import orjson

from temper_gpu.engine.interface import Engines
from temper_gpu.failures import TemperError
from temper_gpu.server.answers import Refusal
from temper_gpu.server.prompts import Prompts
from temper_gpu.server.targets import NotFound, Target, Targets
from temper_gpu.server.template_kwargs import TemplateKwargs

# Time that a request waits for a model that is being opened, before the client must retry.
OPENING_WAIT_S = 5.0
# Far more policies than an engine keeps loaded; a long run brings a new name with every step.
KEPT_NAMES = 64
# Each base model with each template, and each set of its variables.
KEPT_PROMPTS = 16

# The text of a template by its sha256: may wait for a store.
ReadTemplate = Callable[[str], str]

log = logging.getLogger(__name__)


class OpenModels:
    def __init__(self, engines: Engines, targets: Targets, read_template: ReadTemplate) -> None:
        self._engines = engines
        self._targets = targets
        self._read_template = read_template
        self._prompts: OrderedDict[tuple[str, str | None, bytes], Prompts] = OrderedDict()
        self._opening: dict[str, asyncio.Future[Target]] = {}
        self._policy_names: dict[str, str] = {}

    async def target(self, name: str) -> Target:
        target = self._targets.find(name)
        if target is None:
            target = await self._open(name)
        if target.adapter_sha256 is not None:
            self._policy_names[name] = target.adapter_sha256
            for oldest in list(self._policy_names)[:-KEPT_NAMES]:
                del self._policy_names[oldest]
        return target

    async def prompts_of(
        self, target: Target, template_kwargs: TemplateKwargs = (), template_sha256: str | None = None
    ) -> Prompts:
        """`template_sha256`: of a template in the place of the model's own."""
        model = target.engine.model
        # JSON types are compared, because True equals 1 in Python.
        key = (model.name, template_sha256, orjson.dumps(template_kwargs))
        prompts = self._prompts.get(key)
        if prompts is None:
            given = None if template_sha256 is None else await asyncio.to_thread(self._read_template, template_sha256)
            prompts = self._prompts[key] = Prompts(model, template_kwargs, given)
            if not template_kwargs and (gaps := prompts.gaps()):
                log.warning("the chat template has gaps", extra={"model": model.name, "gaps": gaps})
            if len(self._prompts) > KEPT_PROMPTS:
                self._prompts.popitem(last=False)
        self._prompts.move_to_end(key)
        return prompts

    def listed(self) -> list[dict[str, Any]]:
        """The list in OpenAI's format; policies are the loaded ones."""
        loaded = {sha256 for engine in self._engines.started().values() for sha256 in engine.health().adapters}
        policies = [name for name, sha256 in self._policy_names.items() if sha256 in loaded]
        names = [*self._engines.names(), *sorted(policies)]
        return [described(name) for name in names]

    async def find_listed(self, name: str) -> dict[str, Any]:
        """Finds a name of the list, or a base model: one of the hub under its pinned name."""
        listed = {model["id"]: model for model in self.listed()}
        if name in listed and "/" not in name:
            return listed[name]
        try:
            pinned = await asyncio.to_thread(self._engines.pin, name)
        except TemperError as error:
            if error.type != "BadConfig":
                raise
            raise NotFound(error.message) from error
        return described(pinned)

    async def _open(self, name: str) -> Target:
        """Opening continues after the request has been refused."""
        if name not in self._opening:
            opening = asyncio.get_running_loop().run_in_executor(None, self._targets.open, name)
            opening.add_done_callback(lambda done: self._opened(name, done))
            self._opening[name] = opening
        done, _ = await asyncio.wait([self._opening[name]], timeout=OPENING_WAIT_S)
        if not done:
            raise Refusal(503, "loading", f"{name} is still loading; retry", retry_after_s=2)
        return done.pop().result()

    def _opened(self, name: str, done: "asyncio.Future[Target]") -> None:
        self._opening.pop(name, None)
        if not done.cancelled() and done.exception():
            log.warning("model not opened", extra={"policy": name, "reason": str(done.exception())})


def no_template(sha256: str) -> str:
    raise TemperError(
        "BadConfig", f"chat_template_sha256 needs a store, and this server has none, got {sha256}; leave it out"
    )


def described(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "temper"}
